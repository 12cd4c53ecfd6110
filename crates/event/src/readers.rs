//! Several readers, or perhaps none, on one stream: each form tells all that it holds the same, in order.

use crate::maps::Mapping;
use crate::passes::Passes;
use crate::reader::{Begin, End, Reader, Run, Signal, Syscall, Unwatched};

impl<R: Reader + ?Sized> Reader for &mut R {
    fn begin(&mut self, begin: &Begin) {
        (**self).begin(begin);
    }
    fn run(&mut self, run: &Run<'_>) {
        (**self).run(run);
    }
    fn passes(&mut self, passes: &Passes<'_>) {
        (**self).passes(passes);
    }
    fn end(&mut self, end: &End) {
        (**self).end(end);
    }
    fn syscall(&mut self, syscall: &Syscall) {
        (**self).syscall(syscall);
    }
    fn signal(&mut self, signal: &Signal) {
        (**self).signal(signal);
    }
    fn mapping(&mut self, mapping: &Mapping) {
        (**self).mapping(mapping);
    }
    fn wants_mappings(&self) -> bool {
        (**self).wants_mappings()
    }
    fn unwatched(&mut self) -> Option<Unwatched<'_>> {
        (**self).unwatched()
    }
    fn pace(&mut self, tid: i32, period_ns: u64) {
        (**self).pace(tid, period_ns);
    }
    fn gap(&mut self) {
        (**self).gap();
    }
}

impl<A: Reader, B: Reader> Reader for (A, B) {
    fn begin(&mut self, begin: &Begin) {
        self.0.begin(begin);
        self.1.begin(begin);
    }
    fn run(&mut self, run: &Run<'_>) {
        self.0.run(run);
        self.1.run(run);
    }
    fn passes(&mut self, passes: &Passes<'_>) {
        self.0.passes(passes);
        self.1.passes(passes);
    }
    fn end(&mut self, end: &End) {
        self.0.end(end);
        self.1.end(end);
    }
    fn syscall(&mut self, syscall: &Syscall) {
        self.0.syscall(syscall);
        self.1.syscall(syscall);
    }
    fn signal(&mut self, signal: &Signal) {
        self.0.signal(signal);
        self.1.signal(signal);
    }
    fn mapping(&mut self, mapping: &Mapping) {
        self.0.mapping(mapping);
        self.1.mapping(mapping);
    }
    fn wants_mappings(&self) -> bool {
        self.0.wants_mappings() || self.1.wants_mappings()
    }
    /// The first that answers speaks for both.
    fn unwatched(&mut self) -> Option<Unwatched<'_>> {
        match self.0.unwatched() {
            Some(loads) => Some(loads),
            None => self.1.unwatched(),
        }
    }
    fn pace(&mut self, tid: i32, period_ns: u64) {
        self.0.pace(tid, period_ns);
        self.1.pace(tid, period_ns);
    }
    fn gap(&mut self) {
        self.0.gap();
        self.1.gap();
    }
}

impl<R: Reader> Reader for Option<R> {
    fn begin(&mut self, begin: &Begin) {
        if let Some(reader) = self {
            reader.begin(begin);
        }
    }
    fn run(&mut self, run: &Run<'_>) {
        if let Some(reader) = self {
            reader.run(run);
        }
    }
    fn passes(&mut self, passes: &Passes<'_>) {
        if let Some(reader) = self {
            reader.passes(passes);
        }
    }
    fn end(&mut self, end: &End) {
        if let Some(reader) = self {
            reader.end(end);
        }
    }
    fn syscall(&mut self, syscall: &Syscall) {
        if let Some(reader) = self {
            reader.syscall(syscall);
        }
    }
    fn signal(&mut self, signal: &Signal) {
        if let Some(reader) = self {
            reader.signal(signal);
        }
    }
    fn mapping(&mut self, mapping: &Mapping) {
        if let Some(reader) = self {
            reader.mapping(mapping);
        }
    }
    fn wants_mappings(&self) -> bool {
        self.as_ref().is_some_and(R::wants_mappings)
    }
    fn unwatched(&mut self) -> Option<Unwatched<'_>> {
        self.as_mut()?.unwatched()
    }
    fn pace(&mut self, tid: i32, period_ns: u64) {
        if let Some(reader) = self {
            reader.pace(tid, period_ns);
        }
    }
    fn gap(&mut self) {
        if let Some(reader) = self {
            reader.gap();
        }
    }
}

impl<R: Reader> Reader for [R] {
    fn begin(&mut self, begin: &Begin) {
        self.iter_mut().for_each(|reader| reader.begin(begin));
    }
    fn run(&mut self, run: &Run<'_>) {
        self.iter_mut().for_each(|reader| reader.run(run));
    }
    fn passes(&mut self, passes: &Passes<'_>) {
        self.iter_mut().for_each(|reader| reader.passes(passes));
    }
    fn end(&mut self, end: &End) {
        self.iter_mut().for_each(|reader| reader.end(end));
    }
    fn syscall(&mut self, syscall: &Syscall) {
        self.iter_mut().for_each(|reader| reader.syscall(syscall));
    }
    fn signal(&mut self, signal: &Signal) {
        self.iter_mut().for_each(|reader| reader.signal(signal));
    }
    fn mapping(&mut self, mapping: &Mapping) {
        self.iter_mut().for_each(|reader| reader.mapping(mapping));
    }
    fn wants_mappings(&self) -> bool {
        self.iter().any(R::wants_mappings)
    }
    fn unwatched(&mut self) -> Option<Unwatched<'_>> {
        self.iter_mut().find_map(R::unwatched)
    }
    fn pace(&mut self, tid: i32, period_ns: u64) {
        self.iter_mut().for_each(|reader| reader.pace(tid, period_ns));
    }
    fn gap(&mut self) {
        self.iter_mut().for_each(R::gap);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_wire::marker::Cause;

    /// Notes what it is told.
    #[derive(Default)]
    struct Told(Vec<&'static str>, bool);

    impl Reader for Told {
        fn begin(&mut self, _: &Begin) {
            self.0.push("begin");
        }
        fn end(&mut self, _: &End) {
            self.0.push("end");
        }
        fn syscall(&mut self, _: &Syscall) {
            self.0.push("syscall");
        }
        fn signal(&mut self, _: &Signal) {
            self.0.push("signal");
        }
        fn mapping(&mut self, _: &Mapping) {
            self.0.push("mapping");
        }
        fn wants_mappings(&self) -> bool {
            self.1
        }
        fn gap(&mut self) {
            self.0.push("gap");
        }
    }

    fn tell(mut reader: impl Reader) {
        reader.begin(&Begin { tid: 1, time: 0, pc: 0, kernel: None });
        reader.syscall(&Syscall { tid: 1, number: 0, result: 0, pc: 0 });
        reader.signal(&Signal { tid: 1, signal: 1, pc: 0 });
        reader.mapping(&Mapping::parse("1000-2000 r-xp 00000000 fe:01 131 /opt/program").unwrap());
        reader.gap();
        reader.end(&End { tid: 1, time: 0, cause: Cause::Exit, pc: 0 });
    }

    #[test]
    fn every_reader_is_told_everything() {
        let (mut first, mut perhaps, mut none) = (Told::default(), Some(Told::default()), None::<Told>);
        let mut many = [Told::default(), Told::default()];
        tell((&mut first, (&mut perhaps, (&mut none, many.as_mut_slice()))));
        for told in [&first].into_iter().chain(&perhaps).chain(&many) {
            assert_eq!(told.0, ["begin", "syscall", "signal", "mapping", "gap", "end"]);
        }
    }

    #[test]
    fn one_that_wants_mappings_is_enough() {
        let (asks, silent) = (|| Told(Vec::new(), true), Told::default);
        assert!((Some(asks()), silent()).wants_mappings());
        assert!((None::<Told>, [silent(), asks()].as_mut_slice()).wants_mappings());
        assert!(!(Some(silent()), [silent()].as_mut_slice()).wants_mappings());
    }
}
