//! Coming in through the dynamic loader, where ptrace is forbidden.
