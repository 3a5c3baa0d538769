// Allocates for ever under a seccomp filter: filtered KIND. Says "ready" when it is in force;
// from then on it makes no system call, so it needs none that the filter allows.
//
//   container   Docker's default, as far as it refuses: EPERM
//   service     systemd's SystemCallFilter=@system-service, likewise
//   renderer    as those of browsers: read, write, exit, futex, and being killed for others
//   strict      mode 1: read, write, exit
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const int kContainer[] = {SYS_acct,
                                 SYS_add_key,
                                 SYS_bpf,
                                 SYS_clock_adjtime,
                                 SYS_clock_settime,
                                 SYS_setns,
                                 SYS_delete_module,
                                 SYS_finit_module,
                                 SYS_init_module,
                                 SYS_kexec_load,
                                 SYS_keyctl,
                                 SYS_mbind,
                                 SYS_mount,
                                 SYS_move_pages,
                                 SYS_nfsservctl,
                                 SYS_open_by_handle_at,
                                 SYS_perf_event_open,
                                 SYS_personality,
                                 SYS_pivot_root,
                                 SYS_quotactl,
                                 SYS_reboot,
                                 SYS_request_key,
                                 SYS_set_mempolicy,
                                 SYS_settimeofday,
                                 SYS_swapon,
                                 SYS_swapoff,
                                 SYS_umount2,
                                 SYS_unshare,
                                 SYS_userfaultfd,
                                 SYS_vhangup,
                                 SYS_pidfd_getfd,
                                 SYS_process_vm_writev};
static const int kService[] = {SYS_acct,
                               SYS_bpf,
                               SYS_chroot,
                               SYS_clock_adjtime,
                               SYS_clock_settime,
                               SYS_delete_module,
                               SYS_finit_module,
                               SYS_init_module,
                               SYS_kexec_load,
                               SYS_lookup_dcookie,
                               SYS_mount,
                               SYS_nfsservctl,
                               SYS_perf_event_open,
                               SYS_pidfd_getfd,
                               SYS_pivot_root,
                               SYS_process_vm_readv,
                               SYS_process_vm_writev,
                               SYS_ptrace,
                               SYS_quotactl,
                               SYS_reboot,
                               SYS_settimeofday,
                               SYS_swapoff,
                               SYS_swapon,
                               SYS_umount2,
                               SYS_userfaultfd,
                               SYS_vhangup};
static const int kRenderer[] = {SYS_read,       SYS_write,        SYS_exit,
                                SYS_exit_group, SYS_rt_sigreturn, SYS_futex};

// Calls of the list get `listed`, all others `rest`.
static void install(const int* calls, size_t count, unsigned listed, unsigned rest) {
  struct sock_filter filter[128] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
  size_t length = 1;
  for (size_t i = 0; i < count; ++i) {
    filter[length++] =
        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i], 0, 1);
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, listed);
  }
  filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, rest);
  const struct sock_fprog program = {.len = (unsigned short)length, .filter = filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    exit(3);
}

#define INSTALL(calls, listed, rest) \
  install(calls, sizeof(calls) / sizeof(calls[0]), listed, rest)

static void confine(const char* kind) {
  const unsigned refused = SECCOMP_RET_ERRNO | EPERM;
  if (strcmp(kind, "container") == 0)
    INSTALL(kContainer, refused, SECCOMP_RET_ALLOW);
  else if (strcmp(kind, "service") == 0)
    INSTALL(kService, refused, SECCOMP_RET_ALLOW);
  else if (strcmp(kind, "renderer") == 0)
    INSTALL(kRenderer, SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS);
  else if (strcmp(kind, "strict") != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
    exit(2);
}

int main(int argc, char** argv) {
  const size_t kRoom = 4 << 20;
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_MMAP_THRESHOLD, 16 << 20);
  void* volatile room = malloc(kRoom);  // is not left out
  free(room);
  confine(argc > 1 ? argv[1] : "");
  if (write(1, "ready\n", 6) != 6)
    return 1;
  void* blocks[64] = {NULL};
  for (size_t i = 0;; i = (i + 1) % 64) {
    free(blocks[i]);
    blocks[i] = malloc(1000 + 16 * i);
  }
}
