#include "service/calculator/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Numbers of landlock(7), where the headers may be older than the kernel. */
#define FS_EXECUTE     (UINT64_C(1) << 0)
#define FS_WRITE_FILE  (UINT64_C(1) << 1)
#define FS_READ_FILE   (UINT64_C(1) << 2)
#define FS_READ_DIR    (UINT64_C(1) << 3)
#define FS_REMOVE_FILE (UINT64_C(1) << 5)
#define FS_MAKE_REG    (UINT64_C(1) << 8)
#define FS_ALL_OF_1    ((UINT64_C(1) << 13) - 1)
#define FS_REFER       (UINT64_C(1) << 13)
#define FS_TRUNCATE    (UINT64_C(1) << 14)
#define FS_IOCTL_DEV   (UINT64_C(1) << 15)
#define FS_OF_A_FILE   (FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE)
#define NET_ALL        UINT64_C(3) /* bind and connect */
#define SCOPE_ALL      UINT64_C(3) /* abstract sockets and signals */

/* landlock_ruleset_attr as in Linux 6.12; older kernels know the beginning. */
struct attributes {
    uint64_t fs, net, scope;
};

static uint64_t all_files(long abi) {
    return FS_ALL_OF_1 | (abi >= 2 ? FS_REFER : 0) | (abi >= 3 ? FS_TRUNCATE : 0) |
           (abi >= 5 ? FS_IOCTL_DEV : 0);
}

static uint64_t rights_of(enum landlock_use use) {
    switch (use) {
    case LANDLOCK_READ:
        return FS_READ_FILE;
    case LANDLOCK_RUN:
        return FS_EXECUTE | FS_READ_FILE | FS_READ_DIR;
    case LANDLOCK_DEVICE:
        return FS_READ_FILE | FS_WRITE_FILE;
    case LANDLOCK_SCRATCH:
        return FS_READ_FILE | FS_WRITE_FILE | FS_READ_DIR | FS_REMOVE_FILE | FS_MAKE_REG |
               FS_TRUNCATE;
    }
    return 0;
}

static bool add_rule(int rules, const struct landlock_rule *rule, uint64_t handled) {
    struct landlock_path_beneath_attr attr = {.allowed_access = rights_of(rule->use) & handled};
    struct stat status;
    attr.parent_fd = open(rule->path, O_PATH | O_CLOEXEC);
    if (attr.parent_fd < 0) return errno == ENOENT || errno == ENOTDIR;
    bool done = fstat(attr.parent_fd, &status) == 0;
    if (done && !S_ISDIR(status.st_mode)) attr.allowed_access &= FS_OF_A_FILE;
    done = done && syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &attr, 0) == 0;
    (void)close(attr.parent_fd);
    return done;
}

enum err landlock_enter(const struct landlock_rule *rules, size_t n, struct error *error) {
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    struct attributes all = {.fs = all_files(abi), .net = NET_ALL, .scope = SCOPE_ALL};
    size_t known = (abi >= 6 ? 3 : abi >= 4 ? 2 : 1) * sizeof(uint64_t);
    if (abi < 1)
        return error_set(error, ERR_UNSUPPORTED,
                         "the kernel of this host cannot keep foreign code from files (Landlock, "
                         "Linux 5.13)");
    int fd = (int)syscall(SYS_landlock_create_ruleset, &all, known, 0);
    bool done = fd >= 0;
    for (size_t i = 0; i < n; i++)
        done = done && add_rule(fd, &rules[i], all.fs);
    done = done && syscall(SYS_landlock_restrict_self, fd, 0) == 0;
    int failure = errno;
    if (fd >= 0) (void)close(fd);
    if (done) return ERR_NONE;
    return error_set(error, ERR_UNSUPPORTED, "Landlock: %s", strerror(failure));
}
