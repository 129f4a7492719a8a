/*
 * Files: writing to what the cage shows, reading what it must not show, devices, and coming by a second way to what is
 * open already. What can be written is the scratch folder and the tool's own copy of the request.
 * Source: open(2), proc(5), mknod(2), fcntl(2) F_SETLEASE, overwriting of /proc/self/exe (CVE-2019-5736).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cage-probe.h"

static const char REQUEST[] = "/run/chio/request.frame";
static const char SELF[] = "/proc/self/exe";
static const char HELPER[] = "/run/chio-cage/init";

/* None may be had; the first that may is noted by its place. */
static long open_none(const char *const *paths, int flags) {
  int error = ENOENT;
  for (long i = 0; paths[i] != NULL; i++) {
    int fd = open(paths[i], flags | O_NOCTTY | O_NONBLOCK, 0600);
    if (fd < 0) {
      error = errno;
      continue;
    }
    note(i);
    return 0;
  }
  return refused(error);
}

static long create_outside_scratch(void) {
  static const char *const paths[] = {"/probe",         "/usr/probe",     "/usr/bin/probe", "/etc/probe", "/dev/probe",
                                      "/run/probe",     "/bin/probe",     "/lib/probe",     "/proc/probe",
                                      "/run/chio-cage/probe", "/run/chio-cage/tool/probe", NULL};
  return open_none(paths, O_WRONLY | O_CREAT);
}

static long write_kernel_settings(void) {
  static const char *const paths[] = {"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe",
                                      "/proc/sys/kernel/hostname",     "/proc/sys/vm/drop_caches",
                                      "/proc/sys/fs/file-max",         "/proc/sysrq-trigger",
                                      "/proc/1/oom_score_adj",         "/proc/acpi/wakeup",
                                      "/proc/irq/default_smp_affinity", "/proc/mtrr", NULL};
  return open_none(paths, O_WRONLY);
}

static long read_secrets(void) {
  static const char *const paths[] = {"/etc/passwd", "/etc/shadow", "/root",     "/home",          "/var",
                                      "/sys",        "/boot",       "/opt",      "/srv",           "/mnt",
                                      "/etc/ssl",    "/run/user",   "/run/dbus", "/var/lib/chio",  "/run/chio/broker",
                                      "/run/chio/kernel", "/run/chio/authority", "/proc/kcore", "/proc/kmsg", NULL};
  return open_none(paths, O_RDONLY);
}

static long open_devices(void) {
  static const char *const paths[] = {"/dev/mem",  "/dev/kmsg",    "/dev/port",     "/dev/kvm",         "/dev/fuse",
                                      "/dev/vsock", "/dev/net/tun", "/dev/userfaultfd", "/dev/loop-control",
                                      "/dev/mapper/control", "/dev/sda", "/dev/vda", "/dev/nvme0", "/dev/dri/card0",
                                      "/dev/input/event0", "/dev/uinput", "/dev/hpet", "/dev/bus/usb", NULL};
  return open_none(paths, O_RDWR);
}

static long see_broker(void) { return access(broker_path, F_OK); }
static long make_device(void) { return mknod("/tmp/device", S_IFCHR | 0600, makedev(1, 1)); }
static long overwrite_self(void) { return open(SELF, O_WRONLY); }
static long overwrite_helper(void) { return open(HELPER, O_WRONLY); }
static long change_helper_mode(void) { return chmod(HELPER, 0777); }
static long change_system_mode(void) { return chmod("/usr/bin/env", 0777); }
static long give_away(void) { return chown(REQUEST, 0, 0); }
static long link_helper(void) { return link(HELPER, "/tmp/init"); }
static long mark_helper(void) { return setxattr(HELPER, "user.probe", "x", 1, 0); }
static long grant_capability(void) { return setxattr(REQUEST, "security.capability", "x", 1, 0); }

/* Delays whoever opens the file for writing outside. */
static long lease_helper(void) { return fcntl(open(HELPER, O_RDONLY), F_SETLEASE, F_RDLCK); }
static long notify_folder(void) { return fcntl(open("/usr/bin", O_RDONLY), F_NOTIFY, DN_ACCESS | DN_MULTISHOT); }

static long write_request(void) { return open(REQUEST, O_WRONLY); }

static long reopen_request(void) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", open(REQUEST, O_RDONLY));
  return open(path, O_RDWR);
}

/* Its own copy: what it makes of it, the broker compares with what was admitted. */
static long replace_request(void) {
  if (chmod(REQUEST, 0600) != 0) return -1;
  int fd = open(REQUEST, O_WRONLY | O_APPEND);
  if (fd < 0 || ftruncate(fd, 1) != 0) return -1;
  return 0;
}

static long climb(void) {
  char path[256] = "/tmp";
  for (int i = 0; i < 40; i++) strcat(path, "/..");
  strcat(path, "/etc/passwd");
  return open(path, O_RDONLY);
}

const struct attempt file_attempts[] = {
    {"create-outside-scratch", create_outside_scratch},
    {"write-kernel-settings", write_kernel_settings},
    {"read-secrets", read_secrets},
    {"open-devices", open_devices},
    {"make-device", make_device},
    {"broker-path", see_broker},
    {"climb-above-root", climb},
    {"overwrite-self", overwrite_self},
    {"overwrite-helper", overwrite_helper},
    {"chmod-helper", change_helper_mode},
    {"chmod-usr", change_system_mode},
    {"chown-root", give_away},
    {"link-helper", link_helper},
    {"xattr-helper", mark_helper},
    {"xattr-capability", grant_capability},
    {"lease-helper", lease_helper},
    {"notify-usr", notify_folder},
    {"write-request", write_request},
    {"reopen-request", reopen_request},
    {"replace-request", replace_request},
    {NULL, NULL},
};
