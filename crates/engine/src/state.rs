//! The one engine of a process.

use crate::cache::Cache;
use crate::code_map::CodeMap;
use crate::entry;
use crate::fault::FaultActions;
use crate::filling::Filling;
use crate::frame::Template;
use crate::in_place::InPlace;
use crate::spin::Spin;
use crate::thread::{self, Pool, Thread};
use crate::translate::Translator;
use crate::virtual_signals::Actions;
use crate::wanted::Wanted;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use sonde_sys::memory::*;
use sonde_wire::Control;
use sonde_wire::control::{policy, trigger};
use sonde_x64::emit::{Emitter, Mode};
use sonde_x64::plan::{Detail, Limits, Plan, Planner};

/// The engine's state; lives in memory of its own until the process ends.
pub struct Engine {
    /// Start of the shared mapping.
    pub shared: usize,
    /// Thread contexts.
    pub pool: Pool,
    /// This process; changes in a forked child that is followed.
    pub pid: AtomicI32,
    /// Threads in the copy.
    pub active: AtomicU32,
    /// Translation.
    pub translator: Spin<Translator>,
    /// The program's actions for faults while ours are in place.
    pub faults: Spin<FaultActions>,
    /// The program's actions for all signals, in resident modes.
    pub actions: Spin<Actions>,
    /// The probe's own mapping, which is never copied.
    pub probe: (u64, u64),
    /// Code cache bounds, readable without the lock.
    pub cache: (u64, u64),
    /// The shape of signal frames.
    pub template: Spin<Option<Template>>,
    /// How often the cache was emptied to make room.
    pub emptied: AtomicU32,
    /// Nobody wakes those who wait here: see [`crate::room`].
    pub nap: AtomicU32,
    /// Set when the cache has to be thrown away once no thread is in it.
    pub flush_wanted: AtomicU32,
    /// Questions in a row that nobody answered.
    pub unanswered: AtomicU32,
}

static ENGINE: AtomicPtr<Engine> = AtomicPtr::new(core::ptr::null_mut());

/// The engine, once started.
pub fn engine() -> Option<&'static Engine> {
    // SAFETY: the pointer is null or leads to an engine that is never freed.
    unsafe { ENGINE.load(Ordering::Acquire).as_ref() }
}

/// What the engine is started with.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Address of the shared mapping.
    pub shared: usize,
    /// First address of the probe's own mapping.
    pub probe_start: usize,
    /// End of the probe's own mapping.
    pub probe_end: usize,
}

impl Engine {
    /// The control page.
    pub fn control(&self) -> &Control {
        // SAFETY: the shared mapping starts with the control page and is never unmapped.
        unsafe { &*(self.shared as *const Control) }
    }

    /// Whether the policy keeps threads in the copy.
    pub fn is_resident(&self) -> bool {
        self.control().config.policy != policy::BURSTS
    }

    /// Sets the fields of a new thread context that never change.
    pub fn init_thread(&self, thread: &mut Thread) {
        let me = thread as *mut Thread as u64;
        thread.me = me;
        thread.resolve = entry::sonde_resolve as *const () as u64;
        thread.end_direct = entry::sonde_end_direct as *const () as u64;
        thread.end_indirect = entry::sonde_end_indirect as *const () as u64;
        thread.indirect_miss = entry::sonde_miss as *const () as u64;
        thread.missed = entry::sonde_missed as *const () as u64;
        thread.missed_return = entry::sonde_missed_return as *const () as u64;
        thread.none_left = entry::sonde_none_left as *const () as u64;
        thread.leave = entry::sonde_leave as *const () as u64;
        thread.frame_at = &raw const thread.frame as u64;
        thread.state_at = me + (8 << 10);
        thread.stack_top = sonde_wire::slot::Head::stack_top_of(me);
        thread.random = self.control().config.seed ^ me.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        thread.active.store(0, Ordering::Relaxed);
        thread.inside.store(0, Ordering::Relaxed);
        thread.has_timer = 0;
        thread.began_cpu = 0;
        thread.held.info[0] = 0;
        thread.blocked_faults = 0;
        thread.stepping = 0;
        thread.pending_count.store(0, Ordering::Relaxed);
        thread.mask_kept.store(0, Ordering::Relaxed);
        thread.called.store(0, Ordering::Relaxed);
        if thread.buffer >= 0 && self.control().buffers.get(thread.buffer as usize).is_none() {
            thread.buffer = -1;
        }
    }
}

/// Starts the engine of this process. None if memory cannot be had; the program then runs as if we were not there.
///
/// # Safety
/// `shared` is a mapping laid out and configured by Sonde; called once, with all signals blocked.
pub unsafe fn start(with: Start) -> Option<&'static Engine> {
    // SAFETY: the caller vouches for the mapping.
    let control = unsafe { &*(with.shared as *const Control) };
    let config = control.config;
    let probe = (with.probe_start as u64, with.probe_end as u64);
    let mut cache = Cache::new(
        config.cache_bytes as usize,
        entry::sonde_miss as *const () as u64,
        control.exits_used.load(Ordering::Relaxed) as u32,
        control.regions.unwatched.len > 0,
    )?;
    let bounds = (cache.start, cache.end);
    if config.policy != policy::BURSTS {
        // All code of the program runs from here, and takes more pages than it does natively. Bursts are mostly of little
        // code, for which 2 MiB at once would be a waste. A system without large pages refuses, which changes nothing else.
        let _ = prefer_large_pages(cache.start as usize, (cache.end - cache.start) as usize);
    }
    let mut layouts = cache.tables.map(|table| thread::layout(table as usize as u32));
    if config.policy == policy::COUNTER {
        let with_stubs = thread::whole([0; 3], cache.start);
        cache.use_whole_table(
            &with_stubs.stubs(layouts[1].checks, layouts[1].save_rcx),
            with_stubs.without_copy(),
        );
        let entries = cache.whole.as_ref().map(|whole| whole.entries.map(|at| at as usize as u32));
        layouts[1].whole = entries.map(|entries| thread::whole(entries, cache.start));
    }
    let detail = match config.detail {
        0 => Detail::Blocks,
        1 => Detail::Addresses,
        _ => Detail::Values,
    };
    let checks = config.policy != policy::ALWAYS;
    // Checks that are counted in the program's own code are those of counter mode.
    let returns = config.policy != policy::COUNTER && config.in_place == 0;
    let recording = Emitter::new(layouts[0], Mode { checks, returns, record: true });
    let checking = Emitter::new(layouts[1], Mode { checks, returns, record: false });
    let table = control.regions.unchecked;
    // SAFETY: the region lies in the shared mapping, which is never unmapped, begins at a page, and was written before the
    // program started.
    let unchecked = unsafe {
        core::slice::from_raw_parts((with.shared as u64 + table.start) as *const u32, table.len as usize / 4)
    };
    let table = control.regions.unwatched;
    // SAFETY: the region lies in the shared mapping, which is never unmapped, begins at a page, and is only reached through
    // atomics.
    let unwatched = unsafe {
        core::slice::from_raw_parts(
            (with.shared as u64 + table.start) as *const AtomicU64,
            table.len as usize / 8,
        )
    };
    let wanted = (!unwatched.is_empty()).then(|| Wanted::new(unwatched));
    let descriptors = control.regions.descriptors;
    let table = control.regions.in_place;
    // SAFETY: the region lies in the shared mapping, which is never unmapped, begins at a page, and is written while the
    // program stands still.
    let changes = unsafe {
        core::slice::from_raw_parts((with.shared as u64 + table.start) as *const u64, table.len as usize / 8)
    };
    let mut code = CodeMap::new();
    code.ours = bounds;
    code.in_place = InPlace::new(changes)?;
    let translator = Translator {
        cache,
        code,
        planners: [detail, Detail::Blocks].map(|detail| Planner::new(detail, Limits::default())),
        emitters: [recording, checking],
        plan: Plan::default(),
        max_insns: Limits::default().insns,
        generation: 0,
        unchecked,
        wanted,
        ring: Filling::new(with.shared as u64 + descriptors.start, descriptors.len),
    };
    let fresh = Engine {
        shared: with.shared,
        pool: Pool::new()?,
        pid: AtomicI32::new(sonde_sys::process::getpid()),
        active: AtomicU32::new(0),
        translator: Spin::new(translator),
        faults: Spin::new(FaultActions::default()),
        actions: Spin::new(Actions::default()),
        probe,
        cache: bounds,
        template: Spin::new(None),
        emptied: AtomicU32::new(0),
        nap: AtomicU32::new(0),
        flush_wanted: AtomicU32::new(0),
        unanswered: AtomicU32::new(0),
    };
    let fresh_pool = fresh.pool.base as u64;
    let flags = MAP_PRIVATE | MAP_ANONYMOUS;
    let at = mmap(0, size_of::<Engine>(), PROT_READ | PROT_WRITE, flags, -1).ok()? as *mut Engine;
    // SAFETY: the mapping is fresh, large enough and page-aligned.
    unsafe { at.write(fresh) };
    ENGINE.store(at, Ordering::Release);
    control.pool.store(fresh_pool, Ordering::Relaxed);
    control.begin_at.store(entry::sonde_begin as *const () as u64, Ordering::Relaxed);
    control.probe_start.store(probe.0, Ordering::Relaxed);
    control.probe_end.store(probe.1, Ordering::Relaxed);
    control.cache_start.store(bounds.0, Ordering::Relaxed);
    control.cache_end.store(bounds.1, Ordering::Relaxed);
    for i in 0..control.regions.count {
        let guard = with.shared as u64 + control.regions.buffer(i) + control.regions.buffer_len();
        // SAFETY: the guard pages are ours and nobody relies on them being writable.
        unsafe { mprotect(guard as usize, sonde_wire::control::GUARD as usize, 0) }.ok()?;
    }
    let engine = engine()?;
    // SAFETY: the engine stands; Sonde chose a signal that the program does not use.
    let before = unsafe { crate::trigger::install(engine) }?;
    engine.learn_frame();
    let unknown = engine.template.lock().is_none();
    if unknown || config.trigger == trigger::STOPS && !engine.is_resident() {
        // SAFETY: the action that was there before.
        let _ = unsafe { sonde_sys::signal::sigaction(config.signal, Some(&before)) };
    }
    if unknown {
        // No thread could ever go native again.
        return None;
    }
    if config.trigger == trigger::TIMER && !engine.is_resident() {
        // The first thread's timer runs before the program does: no signal has to meet it in a system call.
        let tid = sonde_sys::process::gettid();
        if let Some(thread) = engine.thread_of(tid) {
            engine.arm(thread, tid);
        }
    }
    control.ready.store(1, Ordering::Release);
    Some(engine)
}
