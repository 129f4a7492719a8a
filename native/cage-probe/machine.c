/*
 * The machine itself: programs and counters in the kernel, modules, clocks, names, quotas, the next kernel, memory
 * that several share, and the filter under which this runs. Arguments are empty: what is asked is whether the call is
 * there at all.
 * Source: syscalls(2), seccomp(2), personality(2), sysvipc(7), mq_overview(7).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <mqueue.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cage-probe.h"

/* One call by its number with arguments that do nothing. */
#define ASK(name, ...) \
  static long name(void) { return syscall(__VA_ARGS__); }

ASK(ask_bpf, SYS_bpf, 0, NULL, 0)
ASK(ask_perf, SYS_perf_event_open, NULL, 0, -1, -1, 0L)
ASK(ask_userfaultfd, SYS_userfaultfd, 0)
ASK(ask_fanotify, SYS_fanotify_init, 0, 0)
ASK(ask_kexec, SYS_kexec_load, 0L, 0L, NULL, 0L)
ASK(ask_kexec_file, SYS_kexec_file_load, 0, 0, 0L, NULL, 0L)
ASK(ask_module, SYS_init_module, NULL, 0L, "")
ASK(ask_module_file, SYS_finit_module, 0, "", 0)
ASK(ask_module_removal, SYS_delete_module, "none", O_NONBLOCK)
ASK(ask_quota, SYS_quotactl, 0, NULL, 0, NULL)
ASK(ask_quota_fd, SYS_quotactl_fd, 0, 0, 0, NULL)
ASK(ask_accounting, SYS_acct, NULL)
ASK(ask_swap_on, SYS_swapon, "/tmp/none", 0)
ASK(ask_swap_off, SYS_swapoff, "/tmp/none")
ASK(ask_reboot, SYS_reboot, 0, 0, 0, NULL)
ASK(ask_set_time, SYS_settimeofday, NULL, NULL)
ASK(ask_set_clock, SYS_clock_settime, 0, NULL)
ASK(ask_adjust, SYS_adjtimex, NULL)
ASK(ask_adjust_clock, SYS_clock_adjtime, 0, NULL)
ASK(ask_host_name, SYS_sethostname, "x", 1L)
ASK(ask_domain_name, SYS_setdomainname, "x", 1L)
ASK(ask_kernel_log, SYS_syslog, 3, NULL, 0)
ASK(ask_hang_up, SYS_vhangup)
ASK(ask_move_pages, SYS_move_pages, 1, 0L, NULL, NULL, NULL, 0)
ASK(ask_migrate, SYS_migrate_pages, 1, 0L, NULL, NULL)
ASK(ask_memory_policy, SYS_mbind, NULL, 0L, 0, NULL, 0L, 0)
ASK(ask_cookie, SYS_lookup_dcookie, 0L, NULL, 0L)
ASK(ask_filter, SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL)
ASK(ask_listener, SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, NULL)
ASK(ask_self_attribute, 460, 0, NULL, 0, 0)
ASK(ask_next_call, 467)
ASK(ask_far_call, 999)
ASK(ask_negative_call, -2L)
ASK(ask_memfd, SYS_memfd_create, "probe", 0)
ASK(ask_secret_memory, 447, 0)
ASK(ask_page_cache, 451, 0, NULL, NULL, 0)
ASK(ask_asynchronous, SYS_io_setup, 1, &(void *){NULL})
ASK(ask_file_system_sync, SYS_syncfs, 0)
ASK(ask_sync, SYS_sync)

static long ask_filter_prctl(void) { return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL); }
static long ask_personality(void) { return personality(ADDR_NO_RANDOMIZE | READ_IMPLIES_EXEC); }
static long ask_kernel_memory(void) { return prctl(PR_SET_MM, PR_SET_MM_BRK, 0, 0, 0); }

/* The memory of a segment counts against nobody's limit; the own IPC namespace keeps it from others alone. */
static long ask_segment(void) { return shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600); }
static long ask_semaphores(void) { return semget(IPC_PRIVATE, 1, IPC_CREAT | 0600); }
static long ask_messages(void) { return msgget(IPC_PRIVATE, IPC_CREAT | 0600); }
static long ask_queue(void) { return mq_open("/probe", O_RDWR | O_CREAT, 0600, NULL); }

/* Tells which files of the shared /usr others open. */
static long ask_watch(void) {
  int fd = inotify_init1(0);
  return fd < 0 ? fd : inotify_add_watch(fd, "/usr/bin", IN_OPEN);
}

#ifdef __x86_64__
ASK(ask_ports, SYS_iopl, 3)
ASK(ask_port, SYS_ioperm, 0L, 1L, 1)
ASK(ask_descriptor_table, SYS_modify_ldt, 0, NULL, 0L)
ASK(ask_library, SYS_uselib, "/tmp/none")
#endif

const struct attempt machine_attempts[] = {
    {"bpf", ask_bpf},
    {"perf-event-open", ask_perf},
    {"userfaultfd", ask_userfaultfd},
    {"fanotify-init", ask_fanotify},
    {"kexec-load", ask_kexec},
    {"kexec-file-load", ask_kexec_file},
    {"init-module", ask_module},
    {"finit-module", ask_module_file},
    {"delete-module", ask_module_removal},
    {"quotactl", ask_quota},
    {"quotactl-fd", ask_quota_fd},
    {"acct", ask_accounting},
    {"swapon", ask_swap_on},
    {"swapoff", ask_swap_off},
    {"reboot", ask_reboot},
    {"settimeofday", ask_set_time},
    {"clock-settime", ask_set_clock},
    {"adjtimex", ask_adjust},
    {"clock-adjtime", ask_adjust_clock},
    {"sethostname", ask_host_name},
    {"setdomainname", ask_domain_name},
    {"syslog", ask_kernel_log},
    {"vhangup", ask_hang_up},
    {"move-pages", ask_move_pages},
    {"migrate-pages", ask_migrate},
    {"mbind", ask_memory_policy},
    {"lookup-dcookie", ask_cookie},
    {"seccomp-filter", ask_filter},
    {"seccomp-listener", ask_listener},
    {"prctl-seccomp", ask_filter_prctl},
    {"lsm-set-self-attr", ask_self_attribute},
    {"call-after-the-last", ask_next_call},
    {"call-999", ask_far_call},
    {"call-negative", ask_negative_call},
    {"memfd-create", ask_memfd},
    {"memfd-secret", ask_secret_memory},
    {"personality", ask_personality},
    {"prctl-mm", ask_kernel_memory},
    {"sysv-shared-memory", ask_segment},
    {"sysv-semaphores", ask_semaphores},
    {"sysv-messages", ask_messages},
    {"mqueue", ask_queue},
    {"inotify-usr", ask_watch},
    {"cachestat", ask_page_cache},
    {"io-setup", ask_asynchronous},
    {"sync", ask_sync},
    {"syncfs", ask_file_system_sync},
#ifdef __x86_64__
    {"iopl", ask_ports},
    {"ioperm", ask_port},
    {"modify-ldt", ask_descriptor_table},
    {"uselib", ask_library},
#endif
    {NULL, NULL},
};
