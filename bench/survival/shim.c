// Stands in for a clock that is set and for a slow disk: the lab's libc alone is told so, and nothing that it starts.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
// By how much the clock is set, how slow the disk is, and how often each was met since it was said.
static volatile long *told;
static long met(int what) {
    if (!told || !told[what]) return 0;
    __atomic_add_fetch(&told[2 + what], 1, __ATOMIC_RELAXED);
    return told[what];
}
__attribute__((constructor)) static void start(void) {
    int file = open(getenv("SURVIVE_TOLD"), O_RDWR);
    told = mmap(0, 32, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    unsetenv("LD_PRELOAD");
    unsetenv("SURVIVE_TOLD");
}
int clock_gettime(clockid_t clock, struct timespec *at) {
    int status = syscall(SYS_clock_gettime, clock, at);
    if (!status && clock == CLOCK_REALTIME) at->tv_sec += met(0);
    return status;
}
int gettimeofday(struct timeval *at, void *zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
int fsync(int file) { usleep(met(1)); return syscall(SYS_fsync, file); }
int fdatasync(int file) { usleep(met(1)); return syscall(SYS_fdatasync, file); }
