//! Range-adaptive profiles (RAP): a summary of any stream of numbers in bounded memory, with a proven error.
