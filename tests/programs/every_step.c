/* Signals at every single instruction: a debugger of its own steps a thread, in each round to one instruction further, sends it
 * a signal there and another one somewhat later. The thread compares all that it has with what it set: general registers, flags,
 * vector and floating-point state, fs and gs base, signal mask, alternate stack; handlers look at what they interrupted.
 * Where somebody traces the thread already, another thread sends the signals at random moments instead. */
#include "common.h"
#include <asm/prctl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>

enum { AX, CX, DX, BX, SP, BP, SI, DI };
enum { TRAP_FLAG = 0x100, KINDS = 3 };

struct state {
    uint64_t general[16], pad[16];
    uint8_t vector[8192];
} __attribute__((aligned(64)));

/* What the thread, its handlers and the debugger tell each other. */
static struct talk {
    volatile int tid, refused, kind, asked, begun, done, over, handled;
} *talk;

extern uint32_t every_step_features;
extern char every_step_begin[], every_step_mixed[], every_step_end[], every_step_leaf[], every_step_leaf_end[];
void every_step_round(const struct state *in, struct state *out);
void every_step_entered(int, siginfo_t *, void *);

static struct state set, got;
static int wake[2];

/* Where a vector state differs; of the oldest part without the places of the last floating-point instruction. */
static int vectors_differ(const uint8_t *a, const uint8_t *b) {
    if (memcmp(a, b, 5) || memcmp(a + 24, b + 24, 4)) return 1;
    for (int i = 0; i < 8; i++)
        if (memcmp(a + 32 + 16 * i, b + 32 + 16 * i, 10)) return 2;
    if (memcmp(a + 160, b + 160, 256)) return 3;
    uint32_t size, at, unused;
    for (int part = 2; part < 8; part++) {
        if (!(every_step_features >> part & 1)) continue;
        asm("cpuid" : "=a"(size), "=b"(at), "=c"(unused), "=d"(unused) : "a"(0xd), "c"(part));
        if (memcmp(a + at, b + at, size)) return 10 + part;
    }
    return 0;
}

/* Called by every_step_entered with the registers that it found. */
void every_step_handler(int sig, siginfo_t *info, void *context, const uint64_t *seen) {
    const ucontext_t *uc = context;
    const greg_t *r = uc->uc_mcontext.gregs;
    char *pc = (char *)r[REG_RIP];
    int saved = errno;
    MUST(info->si_signo == sig && info->si_code == SI_TKILL);
    MUST(r[REG_RBX] == (greg_t)seen[0] && r[REG_RBP] == (greg_t)seen[1]);
    MUST(r[REG_R12] == (greg_t)seen[2] && r[REG_R13] == (greg_t)seen[3]);
    MUST(r[REG_R14] == (greg_t)seen[4] && r[REG_R15] == (greg_t)seen[5]);
    MUST((uint32_t)seen[6] == 0x1f80 && (uint16_t)(seen[6] >> 32) == 0x37f);
    if ((every_step_begin <= pc && pc < every_step_end) || (every_step_leaf <= pc && pc < every_step_leaf_end)) {
        MUST(r[REG_RBX] == (greg_t)set.general[BX] && r[REG_RBP] == (greg_t)set.general[BP]);
        MUST(r[REG_RSI] == (greg_t)set.general[SI] && r[REG_RDI] == (greg_t)set.general[DI]);
        MUST(r[REG_R12] == (greg_t)set.general[12] && r[REG_R13] == (greg_t)set.general[13]);
        if (pc < every_step_mixed) MUST(r[REG_R14] == (greg_t)set.general[14]);
        MUST(vectors_differ((const uint8_t *)uc->uc_mcontext.fpregs, set.vector) == 0);
        /* Where flags are still to be looked at. */
        if (pc < every_step_mixed) MUST((r[REG_EFL] & 0x8c1) == 0xc1);
    }
    if (talk->kind == 1) MUST(write(wake[1], "", 1) == 1);
    talk->handled++;
    errno = saved;
}

static uint64_t base_of(int which) {
    uint64_t base = 1;
    MUST(syscall(SYS_arch_prctl, which, &base) == 0);
    return base;
}

static uint64_t mask_now(void) {
    uint64_t mask = 0;
    MUST(syscall(SYS_rt_sigprocmask, 0, NULL, &mask, 8) == 0);
    return mask;
}

static void prepare(void) {
    for (int i = 0; i < 16; i++) set.general[i] = mix(i + 1);
    set.general[AX] = 0xd700; /* all of the flags that sahf sets */
    MUST(__builtin_cpu_supports("sse2"));
    uint32_t a, b, c, d;
    asm("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(0xd), "c"(0));
    every_step_features = a & 0xe7;
    asm volatile("xsave64 %0" : "=m"(set.vector) : "a"(every_step_features), "d"(0));
    uint8_t *v = set.vector;
    for (unsigned i = 160; i < 416; i++) v[i] = mix(i);
    for (int part = 2; part < 8; part++) {
        if (!(every_step_features >> part & 1)) continue;
        asm("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(0xd), "c"(part));
        MUST(b + a <= sizeof set.vector);
        for (uint32_t i = 0; i < a; i++) v[b + i] = mix(b + i);
    }
    for (int i = 0; i < 8; i++) {
        double x = 1.5 * i;
        memset(v + 32 + 16 * i, 0, 16);
        memcpy(v + 32 + 16 * i, &x, 8); /* any bits will do */
        v[32 + 16 * i + 9] = 0x3f;
    }
    *(uint16_t *)v = 0xf7f;        /* towards zero */
    *(uint16_t *)(v + 2) = 0;
    v[4] = 0xff;                   /* all registers in use */
    *(uint32_t *)(v + 24) = 0x7f80; /* towards zero */
    *(uint64_t *)(v + 512) = every_step_features;
}

static void all_registers(void) {
    memset(&got, 0, sizeof got);
    every_step_round(&set, &got);
    uint64_t end = (set.general[14] & ~0xff00ul) | 0x4700;
    MUST((got.general[AX] & ~0x1000ul) == (end & ~0x1000ul));
    for (int i = DX; i < 16; i++)
        if (i != SP && i != 11) MUST(got.general[i] == set.general[i]);
    MUST(vectors_differ(got.vector, set.vector) == 0);
}

/* A read that only a handler can end. */
static void a_wait(void) {
    char byte;
    while (read(wake[0], &byte, 1) != 1) MUST(errno == EINTR);
}

static void a_mask(void) {
    sigset_t usr2, before;
    sigemptyset(&usr2);
    sigaddset(&usr2, SIGUSR2);
    uint64_t plain = mask_now();
    MUST(pthread_sigmask(SIG_BLOCK, &usr2, &before) == 0 && !sigismember(&before, SIGUSR2) && !sigismember(&before, SIGINT));
    MUST(mask_now() == (plain | 1ul << (SIGUSR2 - 1)));
    MUST(pthread_sigmask(SIG_UNBLOCK, &usr2, NULL) == 0);
    MUST(mask_now() == plain);
}

static void *stepped(void *unused) {
    static char stack[65536];
    stack_t mine = {.ss_sp = stack, .ss_size = sizeof stack}, now;
    MUST(sigaltstack(&mine, NULL) == 0);
    uint64_t mask = mask_now(), fs = base_of(ARCH_GET_FS), gs = base_of(ARCH_GET_GS);
    static void (*const kinds[KINDS])(void) = {all_registers, a_wait, a_mask};
    talk->tid = syscall(SYS_gettid);
    for (int round = 1; !talk->over; round++) {
        talk->begun = round;
        while (talk->asked != round && !talk->over) asm volatile("pause");
        if (talk->over) break;
        kinds[talk->kind]();
        talk->done = round;
        MUST(mask_now() == mask && base_of(ARCH_GET_FS) == fs && base_of(ARCH_GET_GS) == gs);
        MUST(sigaltstack(NULL, &now) == 0 && now.ss_sp == mine.ss_sp && now.ss_size == mine.ss_size && now.ss_flags == 0);
    }
    return unused;
}

/* The debugger. */
static pid_t target, process;
static int pass_on;

static void gone(int status) {
    (void)status;
    _exit(1);
}

/* Lets the thread go on in a way, and waits until it stops; 0 if it does not for a while. */
static int wait_stop(int patience) {
    int status;
    for (int i = 0;; i++) {
        pid_t who = waitpid(target, &status, __WALL | WNOHANG);
        if (who == target) break;
        if (who < 0) gone(0);
        if (patience && i > 200) {
            usleep(100);
            if (i > 200 + patience) return 0;
        } else sched_yield();
    }
    if (!WIFSTOPPED(status)) gone(status);
    return status;
}

/* One instruction, or a signal. Says whether the thread stopped again. */
static int step(void) {
    struct user_regs_struct before, after;
    MUST(ptrace(PTRACE_GETREGS, target, 0, &before) == 0);
    errno = 0;
    long code = ptrace(PTRACE_PEEKTEXT, target, before.rip, 0);
    uint64_t mask = 0;
    MUST(ptrace(PTRACE_GETSIGMASK, target, 8, &mask) == 0);
    if ((mask >> (SIGTRAP - 1) & 1) || (code & 0xffff) == 0x050f) {
        /* Steps do harm here: the kernel drops the handler of a trap that is blocked, which it may be after a system call, and
         * takes a trap flag that a return from a signal sets for that of the step. While all signals are blocked, none comes. */
        for (int stop = 0; stop < 2; stop++) { /* before the next system call and behind it */
            MUST(ptrace(PTRACE_SYSCALL, target, 0, pass_on) == 0);
            pass_on = 0;
            int status = wait_stop(300);
            if (status == 0) return 0;
            if (WSTOPSIG(status) == (SIGTRAP | 0x80)) continue;
            if (status >> 16 == 0) pass_on = WSTOPSIG(status);
            return 1;
        }
        return 1;
    }
    if ((code & 0xff) == 0x9d && pass_on == 0) {
        /* The kernel gets confused about whose the trap flag is: this instruction is done for the thread. */
        before.eflags = ptrace(PTRACE_PEEKDATA, target, before.rsp, 0);
        before.rsp += 8;
        before.rip += 1;
        MUST(ptrace(PTRACE_SETREGS, target, 0, &before) == 0);
        return 1;
    }
    /* After a signal was passed on the thread stands before its handler, whatever it did before. */
    int passed = pass_on, own_trap = !passed && (before.eflags & TRAP_FLAG);
    MUST(ptrace(PTRACE_SINGLESTEP, target, 0, pass_on) == 0);
    pass_on = 0;
    int status = wait_stop(300);
    if (status == 0) return 0;
    int sig = WSTOPSIG(status);
    if (status >> 16 == 0 && (sig != SIGTRAP || own_trap)) pass_on = sig;
    if ((code & 0xff) == 0x9c && !own_trap && !passed && !pass_on) {
        /* The kernel shows the trap flag that stepping takes to instructions that store flags. */
        MUST(ptrace(PTRACE_GETREGS, target, 0, &after) == 0);
        long flags = ptrace(PTRACE_PEEKDATA, target, after.rsp, 0);
        MUST(ptrace(PTRACE_POKEDATA, target, after.rsp, flags & ~(long)TRAP_FLAG) == 0);
    }
    return 1;
}

/* Lets the thread run until it has done the round. */
static void finish(int round, int stands) {
    /* A step that has not ended yet ends in a stop of its own, unless a signal comes first. */
    for (int in_step = !stands;; in_step = 0) {
        if (stands) MUST(ptrace(PTRACE_CONT, target, 0, pass_on) == 0);
        pass_on = stands = 0;
        int status;
        while (!stands) {
            if (talk->done == round && talk->begun == round + 1) return;
            pid_t who = waitpid(target, &status, __WALL | WNOHANG);
            if (who < 0 || (who == target && !WIFSTOPPED(status))) gone(status);
            stands = who == target;
            if (!stands) sched_yield();
        }
        if (status >> 16 == 0 && !(in_step && (WSTOPSIG(status) & 0x7f) == SIGTRAP)) pass_on = WSTOPSIG(status);
    }
}

static void send(int sig) { MUST(syscall(SYS_tgkill, process, target, sig) == 0); }

/* A round with signals after so many steps, the second so many later. Returns how many steps it took to the end. */
static int debugged(int round, int kind, int first, int second) {
    int status, steps = 0;
    while (talk->begun != round) sched_yield();
    MUST(ptrace(PTRACE_INTERRUPT, target, 0, 0) == 0);
    if ((status = wait_stop(0)) >> 16 == 0) pass_on = WSTOPSIG(status);
    talk->kind = kind;
    talk->asked = round;
    int sent = 0;
    for (; talk->done != round; steps++) {
        if (steps == first) send(SIGUSR1), sent++;
        if (kind != 1 && steps == second) send(SIGUSR2);
        if (sent && (kind == 1 || steps >= second)) break;
        if (!step()) {
            /* It waits in the kernel. */
            if (!sent) send(SIGUSR1);
            finish(round, 0);
            return steps;
        }
    }
    finish(round, 1);
    return steps;
}

static void debugger(uint64_t budget) {
    while (!talk->tid) usleep(100);
    target = talk->tid;
    if (ptrace(PTRACE_SEIZE, target, 0, PTRACE_O_TRACESYSGOOD) != 0) {
        talk->refused = 1;
        _exit(0);
    }
    int round = 1;
    uint64_t random = mix(time(NULL) ^ getpid());
    for (int kind = 0; kind < KINDS; kind++) {
        /* First once to have everything copied, then to count. */
        if (kind != 1) debugged(round++, kind, 0, 0);
        int all = kind == 1 ? 0 : debugged(round++, kind, -1, -1);
        /* Every instruction if the budget of steps allows, else some of them. */
        int most = all ? all + 5 : 3000;
        uint64_t cost = (uint64_t)most * most / 2 + 1, share = budget / KINDS;
        int apart = cost > share ? cost / share + 1 : 1;
        for (int first = random % apart; first < most; first += apart) {
            random = mix(random);
            int waited = debugged(round++, kind, first, first + 1 + (first & 1 ? random % 40 : random % 2500));
            if (kind == 1 && waited < first) break;
        }
    }
    talk->over = 1;
    ptrace(PTRACE_INTERRUPT, target, 0, 0);
    wait_stop(0);
    ptrace(PTRACE_DETACH, target, 0, 0);
    _exit(0);
}

int main(void) {
    talk = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    MUST(talk != MAP_FAILED && pipe(wake) == 0);
    prepare();
    struct sigaction action = {.sa_sigaction = every_step_entered, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    MUST(sigaction(SIGUSR1, &action, NULL) == 0);
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART;
    MUST(sigaction(SIGUSR2, &action, NULL) == 0);
    uint64_t budget = scaled(20000) + 5000;
    process = getpid();
    pid_t child = fork();
    if (child == 0) debugger(budget);
    MUST(child > 0);
    prctl(PR_SET_PTRACER, child, 0, 0, 0);
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, stepped, NULL) == 0);
    int status = 0;
    MUST(waitpid(child, &status, 0) == child);
    if (talk->refused) {
        for (int round = 1; round < 10 + (int)scaled(200); round++) {
            while (talk->begun != round) sched_yield();
            talk->kind = round % KINDS;
            talk->asked = round;
            do {
                int before = talk->handled;
                MUST(pthread_kill(thread, SIGUSR1) == 0);
                if (talk->kind != 1) MUST(pthread_kill(thread, SIGUSR2) == 0);
                usleep(mix(round) % 300);
                /* Handlers within handlers without end would need a stack without end. */
                while (talk->handled == before && talk->done != round) usleep(50);
            } while (talk->done != round);
        }
        talk->over = 1;
    } else MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    MUST(pthread_join(thread, NULL) == 0);
    MUST(talk->handled > 5);
    printf("everything was as it was set\n");
    return 0;
}
