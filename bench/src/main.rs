//! Measures Sonde against floors, exact counting and other summaries: `sonde-bench <command>`.
//!
//! Each command is one module with a `run` function and prints markdown.

mod contenders;
mod floors;
mod measure;
mod rap;
mod streams;

use std::process::ExitCode;

const USAGE: &str = "\
usage: sonde-bench COMMAND [OPTION...]
  rap [--events N] [--rounds N] [--only STREAM]   range-adaptive trees: rates, and ratios to the floors
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((command, options)) = arguments.split_first() else {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    };
    let outcome = match command.as_str() {
        "rap" => rap::run(options),
        other => Err(format!("unknown command '{other}'\n{USAGE}")),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("sonde-bench: {message}");
            ExitCode::from(2)
        }
    }
}
