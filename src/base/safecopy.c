/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/safecopy.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/sigfault.h"

#if defined(__x86_64__) && defined(__LP64__) && !defined(SAFECOPY_GENERIC)
#define HAVE_FIXUP 1
#else
#define HAVE_FIXUP 0
#endif

/* Attribute of data that a signal handler reads: access to an initial-exec variable never
 * allocates. */
#define TLS_FOR_HANDLER static __thread __attribute__((tls_model("initial-exec")))

struct guard {
	uintptr_t start, len;
	struct guard *outer;
	sigjmp_buf env;
};

TLS_FOR_HANDLER struct guard *guard;

static atomic_uint
	/* number of calls of safecopy_setup(); a thread reads its signal mask again after a
	 * change */
	setups;
TLS_FOR_HANDLER unsigned mask_seen;
/* equal to `setups` as long as the thread's mask does not block faults */
TLS_FOR_HANDLER unsigned mask_open;

/* Returns true in the usual case: the thread's mask was read, and does not block faults. */
static inline bool safecopy_mask_is_open(void)
{
	unsigned now = atomic_load_explicit(&setups, memory_order_relaxed);

	return __builtin_expect(mask_open == now && now > 0, 1);
}

/* Unblock the signals of faults in this thread. Returns true if *before has to be restored. */
static __attribute__((noinline)) bool safecopy_open_mask(sigset_t *before)
{
	unsigned now = atomic_load_explicit(&setups, memory_order_relaxed);
	sigset_t set;

	if (mask_seen != now) {
		pthread_sigmask(SIG_BLOCK, NULL, &set);
		if (!sigismember(&set, SIGBUS) && !sigismember(&set, SIGSEGV))
			mask_open = now;
		mask_seen = now;
	}
	if (mask_open == now)
		return false;
	sigemptyset(&set);
	sigaddset(&set, SIGBUS);
	sigaddset(&set, SIGSEGV);
	pthread_sigmask(SIG_UNBLOCK, &set, before);
	return true;
}

#define FAULTS_OPENED(call)                                                                        \
	({                                                                                         \
		sigset_t before;                                                                   \
		bool opened = safecopy_open_mask(&before);                                         \
		int result = (call);                                                               \
                                                                                                   \
		if (opened)                                                                        \
			pthread_sigmask(SIG_SETMASK, &before, NULL);                               \
		result;                                                                            \
	})
#define FAULTS_OPEN(call) (safecopy_mask_is_open() ? (call) : FAULTS_OPENED(call))

#if HAVE_FIXUP
/*
 * Leaf routines that never move the stack pointer. If a fault is raised anywhere between
 * text_begin and text_end, continuing at text_fixup returns -EFAULT to the caller. The routines do
 * not use `rep movsb`: with a destination that is not aligned it is 15 times slower on some
 * processors.
 */
int safecopy_text_copy(void *dst, const void *src, size_t len)
	__attribute__((visibility("hidden")));
int safecopy_text_store64(uint64_t *dst, uint64_t value) __attribute__((visibility("hidden")));
int safecopy_text_load64(uint64_t *value, const uint64_t *src)
	__attribute__((visibility("hidden")));
int safecopy_text_cmpxchg64(uint64_t *p, uint64_t *expected, uint64_t desired)
	__attribute__((visibility("hidden")));
int safecopy_text_probe(const void *p) __attribute__((visibility("hidden")));
extern const char safecopy_text_begin[] __attribute__((visibility("hidden")));
extern const char safecopy_text_end[] __attribute__((visibility("hidden")));
extern const char safecopy_text_fixup[] __attribute__((visibility("hidden")));

#define ASM_LABEL(name) ".globl " #name "\n.hidden " #name "\n" #name ":\n"
#define ASM_FUNC(name)  ".p2align 4\n.type " #name ", @function\n" ASM_LABEL(name) ".cfi_startproc\n"
#define ASM_END(name)   ".cfi_endproc\n.size " #name ", . - " #name "\n"

/* clang-format off */
__asm__(".pushsection .text, \"ax\", @progbits\n"
	ASM_LABEL(safecopy_text_begin)
	ASM_FUNC(safecopy_text_copy)
	"	xorl %eax, %eax\n"
	"	cmpq $16, %rdx\n"
	"	jb 2f\n"
	"	movdqu (%rsi), %xmm0\n"
	"	movdqu -16(%rsi,%rdx), %xmm7\n"
	"	cmpq $32, %rdx\n"
	"	jbe 7f\n"
	"	movdqu 16(%rsi), %xmm1\n"
	"	movdqu -32(%rsi,%rdx), %xmm6\n"
	"	cmpq $64, %rdx\n"
	"	jbe 6f\n"
	/* copy the first and the last 64 bytes, and whole lines of the destination between them */
	"	movdqu 32(%rsi), %xmm2\n"
	"	movdqu 48(%rsi), %xmm3\n"
	"	movdqu -64(%rsi,%rdx), %xmm4\n"
	"	movdqu -48(%rsi,%rdx), %xmm5\n"
	"	movdqu %xmm0, (%rdi)\n"
	"	movdqu %xmm1, 16(%rdi)\n"
	"	movdqu %xmm2, 32(%rdi)\n"
	"	movdqu %xmm3, 48(%rdi)\n"
	"	leaq -64(%rdi,%rdx), %r8\n"
	"	subq %rdi, %rsi\n"
	"	addq $64, %rdi\n"
	"	andq $-64, %rdi\n"
	"	addq %rdi, %rsi\n"
	"	jmp 8f\n"
	"1:	movdqu (%rsi), %xmm0\n"
	"	movdqu 16(%rsi), %xmm1\n"
	"	movdqu 32(%rsi), %xmm2\n"
	"	movdqu 48(%rsi), %xmm3\n"
	"	movdqa %xmm0, (%rdi)\n"
	"	movdqa %xmm1, 16(%rdi)\n"
	"	movdqa %xmm2, 32(%rdi)\n"
	"	movdqa %xmm3, 48(%rdi)\n"
	"	addq $64, %rsi\n"
	"	addq $64, %rdi\n"
	"8:	cmpq %r8, %rdi\n"
	"	jb 1b\n"
	"	movdqu %xmm4, (%r8)\n"
	"	movdqu %xmm5, 16(%r8)\n"
	"	movdqu %xmm6, 32(%r8)\n"
	"	movdqu %xmm7, 48(%r8)\n"
	"	ret\n"
	"6:	movdqu %xmm1, 16(%rdi)\n"
	"	movdqu %xmm6, -32(%rdi,%rdx)\n"
	"7:	movdqu %xmm0, (%rdi)\n"
	"	movdqu %xmm7, -16(%rdi,%rdx)\n"
	"	ret\n"
	/* below 16 bytes: copy head and tail, which overlap */
	"2:	cmpl $8, %edx\n"
	"	jb 3f\n"
	"	movq (%rsi), %r8\n"
	"	movq -8(%rsi,%rdx), %r9\n"
	"	movq %r8, (%rdi)\n"
	"	movq %r9, -8(%rdi,%rdx)\n"
	"	ret\n"
	"3:	cmpl $4, %edx\n"
	"	jb 4f\n"
	"	movl (%rsi), %r8d\n"
	"	movl -4(%rsi,%rdx), %r9d\n"
	"	movl %r8d, (%rdi)\n"
	"	movl %r9d, -4(%rdi,%rdx)\n"
	"	ret\n"
	"4:	testl %edx, %edx\n"
	"	jz 5f\n"
	"	movl %edx, %ecx\n"
	"	shrl $1, %ecx\n"
	"	movb (%rsi), %r8b\n"
	"	movb (%rsi,%rcx), %r9b\n"
	"	movb -1(%rsi,%rdx), %r10b\n"
	"	movb %r8b, (%rdi)\n"
	"	movb %r9b, (%rdi,%rcx)\n"
	"	movb %r10b, -1(%rdi,%rdx)\n"
	"5:	ret\n"
	ASM_END(safecopy_text_copy)
	ASM_FUNC(safecopy_text_store64)
	"	xorl %eax, %eax\n"
	"	movq %rsi, (%rdi)\n"
	"	ret\n"
	ASM_END(safecopy_text_store64)
	ASM_FUNC(safecopy_text_load64)
	"	movq (%rsi), %rdx\n"
	"	xorl %eax, %eax\n"
	"	movq %rdx, (%rdi)\n"
	"	ret\n"
	ASM_END(safecopy_text_load64)
	ASM_FUNC(safecopy_text_cmpxchg64)
	"	movq (%rsi), %rax\n"
	"	lock cmpxchgq %rdx, (%rdi)\n"
	"	movq %rax, (%rsi)\n"
	"	xorl %eax, %eax\n"
	"	ret\n"
	ASM_END(safecopy_text_cmpxchg64)
	ASM_FUNC(safecopy_text_probe)
	"	movb (%rdi), %dl\n"
	"	xorl %eax, %eax\n"
	"	ret\n"
	ASM_END(safecopy_text_probe)
	ASM_LABEL(safecopy_text_end)
	ASM_FUNC(safecopy_text_fixup)
	"	movl $-14, %eax\n"
	"	ret\n"
	ASM_END(safecopy_text_fixup)
	".popsection\n");
/* clang-format on */
_Static_assert(EFAULT == 14, "the fix-up returns -EFAULT");

static bool safecopy_resume(void *uctx)
{
	greg_t *pc = &((ucontext_t *)uctx)->uc_mcontext.gregs[REG_RIP];

	if ((uintptr_t)*pc < (uintptr_t)safecopy_text_begin ||
	    (uintptr_t)*pc >= (uintptr_t)safecopy_text_end)
		return false;
	*pc = (greg_t)(uintptr_t)safecopy_text_fixup;
	return true;
}

/* The rare case is a separate function, so that the usual case saves no registers. */
static __attribute__((noinline)) int safecopy_opened(void *dst, const void *src, size_t len)
{
	return FAULTS_OPENED(safecopy_text_copy(dst, src, len));
}

int safecopy(void *dst, const void *src, size_t len)
{
	return safecopy_mask_is_open() ? safecopy_text_copy(dst, src, len)
				       : safecopy_opened(dst, src, len);
}

int safecopy_store64(uint64_t *dst, uint64_t value)
{
	return FAULTS_OPEN(safecopy_text_store64(dst, value));
}

int safecopy_load64(uint64_t *value, const uint64_t *src)
{
	return FAULTS_OPEN(safecopy_text_load64(value, src));
}

int safecopy_cmpxchg64(uint64_t *p, uint64_t *expected, uint64_t desired)
{
	return FAULTS_OPEN(safecopy_text_cmpxchg64(p, expected, desired));
}

int safecopy_probe(const void *p)
{
	return FAULTS_OPEN(safecopy_text_probe(p));
}

#else
/* The kernel copies at most 2 GiB in one call. */
#define COPY_MAX ((size_t)1 << 30)

static bool safecopy_resume(void *uctx)
{
	return false;
}

int safecopy(void *dst, const void *src, size_t len)
{
	while (len) {
		struct iovec from = {(void *)src, len < COPY_MAX ? len : COPY_MAX};
		struct iovec to = {dst, from.iov_len};
		ssize_t n = process_vm_writev(getpid(), &from, 1, &to, 1, 0);

		if (n <= 0)
			return n < 0 ? -errno : -EFAULT;
		dst = (char *)dst + n;
		src = (const char *)src + n;
		len -= (size_t)n;
	}
	return 0;
}

/*
 * The CPU itself accesses a word here, because the kernel's copy may tear a word: on processors
 * with a fast `rep movsb` the kernel copies by that instruction. safecopy_guard() passes only an
 * address, so these variables hold the other arguments and the results of the functions below.
 */
TLS_FOR_HANDLER struct {
	uint64_t value, expected;
} word;

/*
 * A fault jumps out of these functions. ThreadSanitizer's instrumentation would then leave a lock
 * taken.
 */
__attribute__((no_sanitize("thread"))) static void safecopy_store64_guarded(const void *addr,
									    size_t len)
{
	__atomic_store_n((uint64_t *)addr, word.value, __ATOMIC_RELAXED);
}

__attribute__((no_sanitize("thread"))) static void safecopy_load64_guarded(const void *addr,
									   size_t len)
{
	word.value = __atomic_load_n((const uint64_t *)addr, __ATOMIC_RELAXED);
}

__attribute__((no_sanitize("thread"))) static void safecopy_cmpxchg64_guarded(const void *addr,
									      size_t len)
{
	__atomic_compare_exchange_n((uint64_t *)addr, &word.expected, word.value, false,
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

int safecopy_store64(uint64_t *dst, uint64_t value)
{
	word.value = value;
	return safecopy_guard(dst, sizeof(*dst), safecopy_store64_guarded);
}

int safecopy_load64(uint64_t *value, const uint64_t *src)
{
	int r = safecopy_guard(src, sizeof(*src), safecopy_load64_guarded);

	if (!r)
		*value = word.value;
	return r;
}

int safecopy_cmpxchg64(uint64_t *p, uint64_t *expected, uint64_t desired)
{
	int r;

	word.expected = *expected;
	word.value = desired;
	r = safecopy_guard(p, sizeof(*p), safecopy_cmpxchg64_guarded);
	*expected = word.expected;
	return r;
}

int safecopy_probe(const void *p)
{
	char c;
	struct iovec to = {&c, 1}, from = {(void *)p, 1};

	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1 ? 0 : -errno;
}
#endif

static enum sigfault_verdict safecopy_on_fault(const siginfo_t *info, void *uctx)
{
	struct guard *g = guard;

	if (safecopy_resume(uctx))
		return SIGFAULT_RESUME;
	/*
	 * A fault at another address belongs to a handler of the application that interrupted the
	 * copy.
	 */
	if (!g || (uintptr_t)info->si_addr - g->start >= g->len)
		return SIGFAULT_PASS;
	/* Restore the thread's mask from ucontext, because ThreadSanitizer may have changed the
	 * handler's mask. */
	pthread_sigmask(SIG_SETMASK, &((ucontext_t *)uctx)->uc_sigmask, NULL);
	siglongjmp(g->env, 1);
}

typedef void safecopy_fn(const void *addr, size_t len);

static __attribute__((noinline)) int safecopy_run_guarded(const void *addr, size_t len,
							  safecopy_fn *fn)
{
	struct guard g = {.start = (uintptr_t)addr, .len = len, .outer = guard};
	int r = -EFAULT;

	if (!sigsetjmp(g.env, 0)) {
		guard = &g;
		atomic_signal_fence(memory_order_seq_cst);
		fn(addr, len);
		atomic_signal_fence(memory_order_seq_cst);
		r = 0;
	}
	guard = g.outer;
	return r;
}

int safecopy_guard(const void *addr, size_t len, safecopy_fn *fn)
{
	return FAULTS_OPEN(safecopy_run_guarded(addr, len, fn));
}

int safecopy_setup(void)
{
	int r = sigfault_setup(safecopy_on_fault);

	atomic_fetch_add(&setups, 1);
	/* A sandbox may forbid the system calls of the generic copies. Report this before the
	 * first copy fails. */
	return r ? r : safecopy_probe(&r);
}
