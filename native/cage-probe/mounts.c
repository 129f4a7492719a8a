/*
 * The view: mounts by the old calls and the new, another root, files by handle. Nothing is mounted over what the
 * later attempts need, should one succeed: each runs in the one mount namespace of this cage.
 * Source: mount(2), fsopen(2), open_tree(2), pivot_root(2), open_by_handle_at(2).
 */
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cage-probe.h"

enum { TREE_CLONE = 1, CONTEXT_CREATE = 6, ATTRIBUTE_BYTES = 32 };

static long mount_tmpfs(void) { return mount("none", "/tmp", "tmpfs", 0, NULL); }
static long mount_proc(void) { return mount("proc", "/proc", "proc", 0, NULL); }
static long mount_bind(void) { return mount("/usr", "/tmp", NULL, MS_BIND, NULL); }
static long remount(void) { return mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL); }
static long unmount(void) { return umount2("/proc", MNT_DETACH); }
static long pivot(void) { return syscall(SYS_pivot_root, "/tmp", "/tmp"); }
static long change_root(void) { return chroot("/tmp"); }
static long tree(void) { return syscall(SYS_open_tree, AT_FDCWD, "/", TREE_CLONE); }
static long move(void) { return syscall(SYS_move_mount, AT_FDCWD, "/usr", AT_FDCWD, "/tmp", 0); }
static long context(void) { return syscall(SYS_fsopen, "tmpfs", 0); }
static long configure(void) { return syscall(SYS_fsconfig, 0, CONTEXT_CREATE, NULL, NULL, 0); }
static long make(void) { return syscall(SYS_fsmount, 0, 0, 0); }
static long pick(void) { return syscall(SYS_fspick, AT_FDCWD, "/tmp", 0); }

static long change_attributes(void) {
  unsigned long attributes[ATTRIBUTE_BYTES / sizeof(unsigned long)] = {0};
  return syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, attributes, sizeof attributes);
}

/* By number: younger than some installed headers. */
static long look_at_mount(void) { return syscall(457, NULL, NULL, 0L, 0); }
static long list_mounts(void) { return syscall(458, NULL, NULL, 0L, 0); }
static long tree_with_attributes(void) { return syscall(467, AT_FDCWD, "/", TREE_CLONE, NULL, 0L); }

static long handle_of(void) {
  int mount_id;
  struct file_handle none = {.handle_bytes = 0};
  return name_to_handle_at(AT_FDCWD, "/usr", &none, &mount_id, 0);
}

static long open_handle(void) {
  struct file_handle none = {.handle_bytes = 0};
  return open_by_handle_at(AT_FDCWD, &none, O_RDONLY);
}

const struct attempt mount_attempts[] = {
    {"mount-tmpfs", mount_tmpfs},
    {"mount-proc", mount_proc},
    {"mount-bind", mount_bind},
    {"mount-remount", remount},
    {"umount", unmount},
    {"pivot-root", pivot},
    {"chroot", change_root},
    {"open-tree", tree},
    {"move-mount", move},
    {"fsopen", context},
    {"fsconfig", configure},
    {"fsmount", make},
    {"fspick", pick},
    {"mount-setattr", change_attributes},
    {"statmount", look_at_mount},
    {"listmount", list_mounts},
    {"open-tree-attr", tree_with_attributes},
    {"name-to-handle", handle_of},
    {"open-by-handle", open_handle},
    {NULL, NULL},
};
