/* A libnvidia-ml.so.1 of our own for tests: answers from a scenario file that is looked at anew at
 * each call. The file is named in UNSTRAND_NVML_SCENARIO and holds lines `key = value`; see README.md.
 * Layouts follow nvml.h; stub_sizeof() lets a test compare them with the Python binding's. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef int R;
typedef unsigned u;
typedef unsigned long long ull;
enum { OK = 0, UNINIT = 1, INVAL = 2, NOSUP = 3, NOPERM = 4, NOTFOUND = 6, INSUF = 7, TIMEOUT = 10, LOST = 15, VERSION = 25 };
#define NONE 0xFFFFFFFFu
#define MOST_GPUS 64
#define MOST_MIG 8

/* ---- scenario file ---------------------------------------------------------------------------- */
#define SLOTS 65536
static char *text;
static struct { const char *key, *value; } table[SLOTS];
static struct timespec loaded_at;
static off_t loaded_size = -1;
static ino_t loaded_inode;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static u hash(const char *s) { u h = 2166136261u; for (; *s; s++) h = (h ^ (unsigned char)*s) * 16777619u; return h % SLOTS; }
static void keep(char *key, char *value) {
  u i = hash(key);
  while (table[i].key && strcmp(table[i].key, key)) i = (i + 1) % SLOTS;
  table[i].key = key; table[i].value = value;
}
static char *trim(char *s) {
  while (*s == ' ') s++;
  char *end = s + strlen(s);
  while (end > s && (end[-1] == ' ' || end[-1] == '\r')) *--end = 0;
  return s;
}
static void reload(void) {
  const char *path = getenv("UNSTRAND_NVML_SCENARIO");
  struct stat st;
  if (!path || stat(path, &st)) return;
  if (st.st_size == loaded_size && st.st_ino == loaded_inode && !memcmp(&st.st_mtim, &loaded_at, sizeof loaded_at)) return;
  FILE *f = fopen(path, "r");
  if (!f) return;
  char *fresh = calloc(1, st.st_size + 1);
  if (fread(fresh, 1, st.st_size, f) != (size_t)st.st_size) { /* shorter than it was: read what there is */ }
  fclose(f);
  memset(table, 0, sizeof table);
  free(text); text = fresh;
  char *rest = text, *line;
  while ((line = strsep(&rest, "\n"))) {
    char *eq = strchr(line, '=');
    if (line[0] == '#' || !eq) continue;
    *eq = 0; keep(trim(line), trim(eq + 1));
  }
  loaded_at = st.st_mtim; loaded_size = st.st_size; loaded_inode = st.st_ino;
}
static int find(char *out, size_t n, const char *key) {
  int found = 0;
  pthread_mutex_lock(&lock);
  for (u i = hash(key); table[i].key; i = (i + 1) % SLOTS)
    if (!strcmp(table[i].key, key)) { snprintf(out, n, "%s", table[i].value); found = 1; break; }
  pthread_mutex_unlock(&lock);
  return found;
}
/* gpuN.name, else gpu.name, else 0 */
static int lookup(char *out, size_t n, u gpu, const char *name) {
  char key[160];
  snprintf(key, sizeof key, "gpu%u.%s", gpu, name);
  if (find(out, n, key)) return 1;
  snprintf(key, sizeof key, "gpu.%s", name);
  return find(out, n, key);
}
static int number(u gpu, const char *name, double *out) {
  char value[160];
  if (!lookup(value, sizeof value, gpu, name) || !value[0]) return 0;
  *out = strtod(value, NULL);
  return 1;
}
static int exact(u gpu, const char *name, ull *out) {
  char value[160];
  if (!lookup(value, sizeof value, gpu, name) || !value[0]) return 0;
  *out = strchr(value, '.') ? (ull)strtod(value, NULL) : strtoull(value, NULL, 0);
  return 1;
}
static double global(const char *key, double otherwise) { char v[160]; return find(v, sizeof v, key) ? strtod(v, NULL) : otherwise; }
static double now_s(clockid_t c) { struct timespec t; clock_gettime(c, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
static ull now_us(void) { return (ull)(now_s(CLOCK_REALTIME) * 1e6); }
/* A counter: its base, plus its rate since the library was loaded. */
static double born;
__attribute__((constructor)) static void start(void) { born = now_s(CLOCK_MONOTONIC); }
static int counter(u gpu, const char *name, ull *out) {
  char rate_name[160]; double rate = 0;
  if (!exact(gpu, name, out)) return 0;
  snprintf(rate_name, sizeof rate_name, "%s_per_s", name);
  if (number(gpu, rate_name, &rate)) *out += (ull)(rate * (now_s(CLOCK_MONOTONIC) - born));
  return 1;
}

/* ---- handles and the gate that every call passes ---------------------------------------------- */
typedef struct dev { u gpu, slot; } *D; /* slot NONE: the whole GPU */
static struct dev gpus[MOST_GPUS], migs[MOST_GPUS][MOST_MIG];
static int initialised;
static int is_mig(D d) { return d->slot != NONE; }

/* Every call looks at the file once, on its way in. */
static void look(void) { pthread_mutex_lock(&lock); reload(); pthread_mutex_unlock(&lock); }
static R gate(D d, const char *function) {
  char key[160], value[160]; double seconds;
  look();
  snprintf(key, sizeof key, "hang.%s", function);
  if (find(value, sizeof value, key) && (seconds = strtod(value, NULL)) > 0) usleep((useconds_t)(seconds * 1e6));
  snprintf(key, sizeof key, "error.%s", function);
  if (find(value, sizeof value, key)) return atoi(value);
  if (!initialised || global("driver_gone", 0)) return UNINIT;
  if (!d) return OK;
  double flag;
  if (number(d->gpu, "lost", &flag) && flag) return LOST;
  if (lookup(value, sizeof value, d->gpu, key)) return atoi(value);
  snprintf(key, sizeof key, "hang.%s", function);
  if (number(d->gpu, key, &seconds) && seconds > 0) usleep((useconds_t)(seconds * 1e6));
  if (is_mig(d)) { snprintf(key, sizeof key, "mig%u.uuid", d->slot); if (!lookup(value, sizeof value, d->gpu, key)) return INVAL; }
  return OK;
}
#define GATE(d) do { R r_ = gate(d, __func__); if (r_) return r_; } while (0)
#define WHOLE(d) do { if (!d) return INVAL; GATE(d); if (is_mig(d)) return NOSUP; } while (0)
#define ANY(d) do { if (!d) return INVAL; GATE(d); } while (0)
static int mig_on(u gpu) { double on = 0; return number(gpu, "mig", &on) && on; }
static int mig_number(D d, const char *name, ull *out) { char key[96]; snprintf(key, sizeof key, "mig%u.%s", d->slot, name); return exact(d->gpu, key, out); }
static u gpu_count(void) { u n = (u)global("count", 1); return n > MOST_GPUS ? MOST_GPUS : n; }

/* ---- library ---------------------------------------------------------------------------------- */
static R init(void) { look(); R r = (R)global("error.nvmlInit", 0); if (!r) initialised = 1; return r; }
R nvmlInit_v2(void) { return init(); }
R nvmlInitWithFlags(u flags) { (void)flags; return init(); }
R nvmlShutdown(void) { initialised = 0; return OK; }
const char *nvmlErrorString(R r) {
  switch (r) { case 0: return "Success"; case 1: return "Uninitialized"; case 2: return "Invalid Argument"; case 3: return "Not Supported";
    case 4: return "Insufficient Permissions"; case 6: return "Not Found"; case 9: return "Driver Not Loaded"; case 15: return "GPU is lost"; default: return "Unknown Error"; }
}
static R put_text(char *b, u n, const char *key, const char *otherwise) { char v[160]; snprintf(b, n, "%s", find(v, sizeof v, key) ? v : otherwise); return OK; }
R nvmlSystemGetDriverVersion(char *b, u n) { GATE(NULL); return put_text(b, n, "driver", "590.48.01"); }
R nvmlSystemGetNVMLVersion(char *b, u n) { GATE(NULL); return put_text(b, n, "nvml", "13.590.48"); }
R nvmlSystemGetCudaDriverVersion(int *v) { *v = 13010; return OK; }
R nvmlSystemGetCudaDriverVersion_v2(int *v) { *v = 13010; return OK; }

/* ---- identity --------------------------------------------------------------------------------- */
R nvmlDeviceGetCount_v2(u *c) { GATE(NULL); *c = gpu_count(); return OK; }
R nvmlDeviceGetHandleByIndex_v2(u i, D *d) {
  look();
  if (i >= gpu_count()) return INVAL;
  gpus[i].gpu = i; gpus[i].slot = NONE;
  GATE(&gpus[i]);
  *d = &gpus[i];
  return OK;
}
static void uuid_of(u gpu, char *b, u n) { char v[160]; if (lookup(v, sizeof v, gpu, "uuid")) snprintf(b, n, "%s", v); else snprintf(b, n, "GPU-00000000-0000-0000-0000-%012u", gpu); }
R nvmlDeviceGetUUID(D d, char *b, u n) {
  ANY(d);
  if (!is_mig(d)) { uuid_of(d->gpu, b, n); return OK; }
  char key[96], v[160];
  snprintf(key, sizeof key, "mig%u.uuid", d->slot);
  if (!lookup(v, sizeof v, d->gpu, key)) return NOTFOUND;
  snprintf(b, n, "%s", v);
  return OK;
}
R nvmlDeviceGetHandleByUUID(const char *s, D *d) {
  char b[160];
  look();
  for (u i = 0; i < gpu_count(); i++) { uuid_of(i, b, sizeof b); if (!strcmp(b, s)) return nvmlDeviceGetHandleByIndex_v2(i, d); }
  return NOTFOUND;
}
R nvmlDeviceGetIndex(D d, u *i) { ANY(d); *i = d->gpu; return OK; }
R nvmlDeviceGetName(D d, char *b, u n) {
  char v[160] = "NVIDIA H100 80GB HBM3", p[96], key[96];
  ANY(d);
  double bad = 0;
  lookup(v, sizeof v, d->gpu, "name");
  if (number(d->gpu, "bad_name", &bad) && bad) { snprintf(b, n, "NVIDIA \xf8\xff GPU"); return OK; }
  snprintf(key, sizeof key, "mig%u.profile", d->slot);
  if (is_mig(d) && lookup(p, sizeof p, d->gpu, key)) snprintf(b, n, "%s MIG %s", v, p); else snprintf(b, n, "%s", v);
  return OK;
}
R nvmlDeviceGetMinorNumber(D d, u *m) { ull v; WHOLE(d); *m = exact(d->gpu, "minor", &v) ? (u)v : d->gpu; return OK; }
typedef struct { char legacy[16]; u domain, bus, device, pciDeviceId, pciSubSystemId; char busId[32]; } Pci;
static void pci_of(u gpu, Pci *p) {
  memset(p, 0, sizeof *p);
  p->bus = 0x10 + gpu; p->pciDeviceId = 0x233010DE;
  snprintf(p->legacy, sizeof p->legacy, "0000:%02X:00.0", p->bus);
  snprintf(p->busId, sizeof p->busId, "00000000:%02X:00.0", p->bus);
}
R nvmlDeviceGetPciInfo_v3(D d, Pci *p) { ANY(d); pci_of(d->gpu, p); return OK; }
R nvmlDeviceGetArchitecture(D d, u *a) { ull v; WHOLE(d); *a = exact(d->gpu, "architecture", &v) ? (u)v : 9; return OK; }
R nvmlDeviceGetComputeMode(D d, int *m) { WHOLE(d); *m = 0; return OK; }
R nvmlDeviceGetCudaComputeCapability(D d, int *major, int *minor) { ANY(d); *major = 9; *minor = 0; return OK; }
R nvmlDeviceGetTopologyCommonAncestor(D a, D b, int *level) { WHOLE(a); WHOLE(b); *level = a->gpu / 4 == b->gpu / 4 ? 20 : 50; return OK; }

/* ---- MIG -------------------------------------------------------------------------------------- */
R nvmlDeviceGetMigMode(D d, u *c, u *p) { double on; WHOLE(d); if (!number(d->gpu, "mig", &on)) return NOSUP; *c = *p = on != 0; return OK; }
R nvmlDeviceIsMigDeviceHandle(D d, u *x) { if (!d) return INVAL; *x = is_mig(d); return OK; }
R nvmlDeviceGetMaxMigDeviceCount(D d, u *c) { WHOLE(d); *c = mig_on(d->gpu) ? 7 : 0; return OK; }
R nvmlDeviceGetMigDeviceHandleByIndex(D d, u i, D *m) {
  char key[96], v[160];
  WHOLE(d);
  if (!mig_on(d->gpu)) return NOSUP;
  if (i >= MOST_MIG) return INVAL;
  snprintf(key, sizeof key, "mig%u.uuid", i);
  if (!lookup(v, sizeof v, d->gpu, key)) return NOTFOUND;
  migs[d->gpu][i].gpu = d->gpu; migs[d->gpu][i].slot = i;
  *m = &migs[d->gpu][i];
  return OK;
}
R nvmlDeviceGetDeviceHandleFromMigDeviceHandle(D d, D *p) { ANY(d); if (!is_mig(d)) return INVAL; return nvmlDeviceGetHandleByIndex_v2(d->gpu, p); }
R nvmlDeviceGetGpuInstanceId(D d, u *i) { ull v; ANY(d); if (!is_mig(d)) return NOSUP; *i = mig_number(d, "gi", &v) ? (u)v : d->slot; return OK; }
R nvmlDeviceGetComputeInstanceId(D d, u *i) { ull v; ANY(d); if (!is_mig(d)) return NOSUP; *i = mig_number(d, "ci", &v) ? (u)v : 0; return OK; }
typedef struct { u sm, ce, dec, enc, jpg, ofa, gi_slices, ci_slices; ull mem_mb; } Attributes;
R nvmlDeviceGetAttributes_v2(D d, Attributes *a) {
  ull v;
  ANY(d);
  if (!is_mig(d)) return NOSUP;
  memset(a, 0, sizeof *a);
  a->gi_slices = a->ci_slices = mig_number(d, "slices", &v) ? (u)v : 1;
  a->sm = a->gi_slices * 16;
  a->mem_mb = mig_number(d, "mem_mib", &v) ? v : 9984;
  return OK;
}

/* ---- load ------------------------------------------------------------------------------------- */
typedef struct { u gpu, memory; } Util;
R nvmlDeviceGetUtilizationRates(D d, Util *x) {
  ull v;
  WHOLE(d);
  if (mig_on(d->gpu) || !exact(d->gpu, "util", &v)) return NOSUP;
  x->gpu = (u)v; x->memory = exact(d->gpu, "mem_util", &v) ? (u)v : 0;
  return OK;
}
static R memory(D d, ull *total, ull *reserved, ull *used) {
  ull v;
  if (is_mig(d)) {
    *total = (mig_number(d, "mem_mib", &v) ? v : 9984) << 20; *used = (mig_number(d, "used_mib", &v) ? v : 0) << 20; *reserved = 0;
    return OK;
  }
  if (!exact(d->gpu, "mem_mib", &v)) return NOSUP;
  *total = v << 20;
  *reserved = (exact(d->gpu, "reserved_mib", &v) ? v : 0) << 20;
  *used = exact(d->gpu, "used_bytes", &v) ? v : (exact(d->gpu, "used_mib", &v) ? v : 0) << 20;
  return OK;
}
typedef struct { ull total, free, used; } Mem1;
typedef struct { u version; ull total, reserved, free, used; } Mem2;
R nvmlDeviceGetMemoryInfo(D d, Mem1 *m) { ull reserved; ANY(d); R r = memory(d, &m->total, &reserved, &m->used); m->used += reserved; m->free = m->total - m->used; return r; }
R nvmlDeviceGetMemoryInfo_v2(D d, Mem2 *m) {
  ANY(d);
  if (global("no_memory_v2", 0)) return NOSUP;
  R r = memory(d, &m->total, &m->reserved, &m->used);
  m->free = m->total - m->used - m->reserved;
  return r;
}
#define ONE(function, type, key) R function(D d, type *x) { ull v; WHOLE(d); if (!counter(d->gpu, key, &v)) return NOSUP; *x = (type)v; return OK; }
ONE(nvmlDeviceGetPowerUsage, u, "power_mw")
ONE(nvmlDeviceGetPowerManagementLimit, u, "power_limit_mw")
ONE(nvmlDeviceGetEnforcedPowerLimit, u, "power_limit_mw")
ONE(nvmlDeviceGetTotalEnergyConsumption, ull, "energy_mj")
ONE(nvmlDeviceGetPcieReplayCounter, u, "pcie_replays")
ONE(nvmlDeviceGetCurrentClocksEventReasons, ull, "reasons")
ONE(nvmlDeviceGetCurrentClocksThrottleReasons, ull, "reasons")
ONE(nvmlDeviceGetPerformanceState, u, "pstate")
ONE(nvmlDeviceGetFanSpeed, u, "fan")
R nvmlDeviceGetTemperature(D d, int sensor, u *t) { ull v; WHOLE(d); (void)sensor; if (!exact(d->gpu, "temperature", &v)) return NOSUP; *t = (u)v; return OK; }
typedef struct { u version; int sensor, temperature; } Temperature;
R nvmlDeviceGetTemperatureV(D d, Temperature *t) { ull v; WHOLE(d); if (!exact(d->gpu, "temperature", &v)) return NOSUP; t->temperature = (int)v; return OK; }
R nvmlDeviceGetClockInfo(D d, int type, u *c) { ull v; WHOLE(d); if (!exact(d->gpu, type == 2 ? "mem_clock" : "sm_clock", &v)) return NOSUP; *c = (u)v; return OK; }
static R media(D d, u *x, u *period, const char *key) { ull v; if (mig_on(d->gpu) || !exact(d->gpu, key, &v)) return NOSUP; *x = (u)v; *period = 166666; return OK; }
R nvmlDeviceGetEncoderUtilization(D d, u *x, u *p) { WHOLE(d); return media(d, x, p, "encoder"); }
R nvmlDeviceGetDecoderUtilization(D d, u *x, u *p) { WHOLE(d); return media(d, x, p, "decoder"); }
typedef struct { ull ts; ull value; } Sample;
/* samples = 20,40,60: one every 166 ms up to now; sample_clock_us fixes "now" */
R nvmlDeviceGetSamples(D d, int type, ull since, u *value_type, u *n, Sample *s) {
  char list[160]; ull last;
  WHOLE(d);
  if (type != 1 || mig_on(d->gpu) || !lookup(list, sizeof list, d->gpu, "samples")) return NOSUP;
  if (!exact(d->gpu, "sample_clock_us", &last)) last = now_us();
  ull values[64]; u count = 0; char *rest = list, *item;
  while (count < 64 && (item = strsep(&rest, ","))) values[count++] = strtoull(item, NULL, 0);
  u fresh = 0;
  for (u i = 0; i < count; i++) if (last - (count - 1 - i) * 166000 > since) fresh++;
  if (!fresh) return NOTFOUND;
  *value_type = 1;
  if (!s) { *n = count; return OK; }
  u k = 0;
  for (u i = 0; i < count && k < *n; i++) { ull ts = last - (count - 1 - i) * 166000; if (ts > since) { s[k].ts = ts; s[k++].value = values[i]; } }
  *n = k;
  return OK;
}

/* ---- processes: procN = pid,kind(C|G|M),mem_mib,sm,gi,ci; or proc_count + proc_base ------------ */
typedef struct { u pid; ull mem; u gi, ci; } Proc;
typedef struct { u pid; char kind; ull mem; u sm, gi, ci; } Row;
static int row(u gpu, u i, Row *r) {
  char key[64], v[160];
  snprintf(key, sizeof key, "proc%u", i);
  memset(r, 0, sizeof *r);
  r->kind = 'C'; r->gi = r->ci = NONE;
  if (lookup(v, sizeof v, gpu, key)) {
    char mem[64] = "0"; unsigned pid = 0, sm = 0, gi = NONE, ci = NONE;
    sscanf(v, "%u,%c,%63[^,],%u,%u,%u", &pid, &r->kind, mem, &sm, &gi, &ci);
    r->pid = pid; r->mem = !strcmp(mem, "na") ? 0xFFFFFFFFFFFFFFFFULL : strtoull(mem, NULL, 0) << 20; r->sm = sm; r->gi = gi; r->ci = ci;
    return 1;
  }
  ull base, count;
  if (!exact(gpu, "proc_base", &base) || !exact(gpu, "proc_count", &count) || i >= count) return 0;
  r->pid = (u)base + i; r->mem = 10ULL << 20;
  return 1;
}
static R processes(D d, u *n, Proc *p, char kind) {
  ull gi = 0; u found = 0; Row r;
  if (is_mig(d)) mig_number(d, "gi", &gi);
  for (u i = 0; row(d->gpu, i, &r); i++) {
    if (r.kind != kind && !(r.kind == 'B' && kind != 'M')) continue; /* B: compute and graphics */
    if (is_mig(d) && r.gi != gi) continue;
    if (p && found < *n) { p[found].pid = r.pid; p[found].mem = r.mem; p[found].gi = r.gi; p[found].ci = r.ci; }
    found++;
  }
  if (found && (!p || *n < found)) { *n = found; return INSUF; }
  *n = found;
  return OK;
}
R nvmlDeviceGetComputeRunningProcesses_v3(D d, u *n, Proc *p) { ANY(d); return processes(d, n, p, 'C'); }
R nvmlDeviceGetGraphicsRunningProcesses_v3(D d, u *n, Proc *p) { ANY(d); return processes(d, n, p, 'G'); }
R nvmlDeviceGetMPSComputeRunningProcesses_v3(D d, u *n, Proc *p) { ANY(d); return processes(d, n, p, 'M'); }
typedef struct { u pid; ull ts; u sm, mem, enc, dec; } ProcUtil;
/* proc_clock_us fixes the samples' time; garbage_rows adds zombie rows; zero_samples says SUCCESS with none */
R nvmlDeviceGetProcessUtilization(D d, ProcUtil *s, u *n, ull since) {
  Row r; ull at, garbage = 0, zero = 0; u found = 0;
  WHOLE(d);
  if (mig_on(d->gpu)) return NOSUP;
  if (exact(d->gpu, "zero_samples", &zero) && zero) { *n = 0; return OK; }
  if (!exact(d->gpu, "proc_clock_us", &at)) at = now_us();
  exact(d->gpu, "garbage_rows", &garbage);
  ull again = 0;
  exact(d->gpu, "samples_again", &again); /* a driver that does not look at "since" */
  for (u i = 0; (again || at > since) && row(d->gpu, i, &r); i++) {
    if (!r.sm) continue;
    if (s && found < *n) { memset(&s[found], 0, sizeof *s); s[found].pid = r.pid; s[found].ts = at; s[found].sm = r.sm; }
    found++;
  }
  for (u i = 0; i < garbage; i++, found++)
    if (s && found < *n) { memset(&s[found], 0, sizeof *s); s[found].pid = i % 3 ? 4242 : 0; s[found].ts = i % 2 ? at : 7; s[found].sm = 37100; }
  if (!found) return NOTFOUND;
  if (!s || *n < found) { *n = found; return INSUF; }
  *n = found;
  return OK;
}
R nvmlSystemGetProcessName(u pid, char *b, u n) { (void)pid; snprintf(b, n, "python\xff"); return OK; }
/* accounting: acctN = pid,gpu_percent,mem_mib,time_ms,start_us,running */
R nvmlDeviceGetAccountingMode(D d, u *m) { ull v; WHOLE(d); if (!exact(d->gpu, "accounting", &v)) return NOSUP; *m = (u)v; return OK; }
R nvmlDeviceGetAccountingBufferSize(D d, u *n) { WHOLE(d); *n = 4000; return OK; }
typedef struct { u gpu, memory; ull most, time, start; u running, reserved[5]; } Account;
static int account(u gpu, u i, u *pid, Account *a) {
  char key[64], v[160]; ull mem = 0;
  snprintf(key, sizeof key, "acct%u", i);
  if (!lookup(v, sizeof v, gpu, key)) return 0;
  memset(a, 0, sizeof *a);
  sscanf(v, "%u,%u,%llu,%llu,%llu,%u", pid, &a->gpu, &mem, &a->time, &a->start, &a->running);
  a->most = mem << 20;
  return 1;
}
R nvmlDeviceGetAccountingPids(D d, u *n, u *pids) {
  Account a; u pid, found = 0;
  WHOLE(d);
  for (; account(d->gpu, found, &pid, &a); found++) if (pids && found < *n) pids[found] = pid;
  if (found && (!pids || *n < found)) { *n = found; return INSUF; }
  *n = found;
  return OK;
}
R nvmlDeviceGetAccountingStats(D d, u wanted, Account *a) {
  u pid;
  WHOLE(d);
  for (u i = 0; account(d->gpu, i, &pid, a); i++) if (pid == wanted) return OK;
  return NOTFOUND;
}

/* ---- fields ----------------------------------------------------------------------------------- */
typedef struct { u field, scope; long long ts, latency; u type; R ret; ull value; } Field;
static u links(u gpu) { ull v; return exact(gpu, "links", &v) ? (u)v : 0; }
static R kib(D d, Field *f, const char *key, u n) {
  if (!n || !counter(d->gpu, key, &f->value)) return NOSUP;
  if (f->scope != NONE && f->scope >= n) return INVAL;
  if (f->scope != NONE) f->value /= n;
  f->type = 3;
  return OK;
}
static R per_link_bytes(D d, Field *f, const char *key, u n) {
  if (!n || !counter(d->gpu, key, &f->value)) return NOSUP;
  if (f->scope >= n) return INVAL;
  f->value /= n; f->type = 3;
  return OK;
}
static R plain(D d, Field *f, const char *key, u type) { f->type = type; return counter(d->gpu, key, &f->value) ? OK : NOSUP; }
static R field(D d, Field *f, u n) {
  static const struct { u id; const char *key; } ns[] = { {74, "power_slow_ns"}, {75, "thermal_slow_ns"}, {76, "sync_slow_ns"}, {77, "board_slow_ns"}, {78, "low_util_slow_ns"}, {79, "reliability_slow_ns"}, {269, "sw_thermal_ns"}, {270, "hw_thermal_ns"}, {271, "hw_brake_ns"} };
  switch (f->field) {
    case 82: return plain(d, f, "mem_temperature", 1);
    case 83: case 191: return plain(d, f, "energy_mj", 3);
    case 91: f->type = 1; f->value = n; return f->value ? OK : NOSUP;
    case 138: return kib(d, f, "nvlink_tx_kib", n);
    case 139: return kib(d, f, "nvlink_rx_kib", n);
    case 197: return plain(d, f, "pcie_tx_bytes", 3);
    case 198: return plain(d, f, "pcie_rx_bytes", 3);
    case 202: return per_link_bytes(d, f, "nvlink5_tx_bytes", n);
    case 204: return per_link_bytes(d, f, "nvlink5_rx_bytes", n);
    case 185: return f->scope == 0 ? plain(d, f, "power_average_mw", 1) : NOSUP;
    case 186: return f->scope == 0 ? plain(d, f, "power_instant_mw", 1) : f->scope == 1 ? plain(d, f, "power_module_mw", 1) : NOSUP;
  }
  for (size_t i = 0; i < sizeof ns / sizeof *ns; i++) if (ns[i].id == f->field) return plain(d, f, ns[i].key, 3);
  return NOSUP;
}
R nvmlDeviceGetFieldValues(D d, int n, Field *f) {
  WHOLE(d);
  u count = mig_on(d->gpu) ? 0 : links(d->gpu); /* no NVLink query is supported in MIG mode */
  for (int i = 0; i < n; i++) { f[i].ts = (long long)now_us(); f[i].latency = 3; f[i].value = 0; f[i].ret = field(d, &f[i], count); }
  return OK;
}
R nvmlDeviceGetNvLinkState(D d, u l, u *a) { WHOLE(d); if (mig_on(d->gpu)) return NOSUP; if (l >= links(d->gpu)) return INVAL; *a = 1; return OK; }
R nvmlDeviceGetNvLinkVersion(D d, u l, u *v) { WHOLE(d); if (l >= links(d->gpu)) return INVAL; *v = 4; return OK; }
R nvmlDeviceGetNvLinkRemoteDeviceType(D d, u l, int *t) { ull v; WHOLE(d); if (l >= links(d->gpu)) return INVAL; *t = exact(d->gpu, "link_remote", &v) ? (int)v : 2; return OK; }
R nvmlDeviceGetNvLinkRemotePciInfo_v2(D d, u l, Pci *p) { ull v; WHOLE(d); if (l >= links(d->gpu)) return INVAL; pci_of(exact(d->gpu, "link_peer", &v) ? (u)v : 0, p); return OK; }
typedef struct { u version; unsigned char cluster[16]; R status; u clique, state, health; } FabricV2;
R nvmlDeviceGetGpuFabricInfoV(D d, FabricV2 *f) {
  ull v;
  WHOLE(d);
  if (!exact(d->gpu, "fabric_state", &v)) return NOSUP;
  f->state = (u)v; f->status = OK; f->health = 2;
  f->clique = exact(d->gpu, "fabric_clique", &v) ? (u)v : 0;
  memset(f->cluster, exact(d->gpu, "fabric_cluster", &v) ? (int)v : 0, sizeof f->cluster);
  return OK;
}

/* ---- health ----------------------------------------------------------------------------------- */
R nvmlDeviceGetTotalEccErrors(D d, int type, int kind, ull *c) {
  WHOLE(d);
  return exact(d->gpu, type ? kind ? "ecc_unc_life" : "ecc_unc" : kind ? "ecc_corr_life" : "ecc_corr", c) ? OK : NOSUP;
}
R nvmlDeviceGetRemappedRows(D d, u *corr, u *unc, u *pending, u *failed) {
  ull v;
  WHOLE(d);
  if (!exact(d->gpu, "rows_corr", &v)) return NOSUP;
  *corr = (u)v; *unc = exact(d->gpu, "rows_unc", &v) ? (u)v : 0;
  *pending = exact(d->gpu, "rows_pending", &v) ? (u)v : 0; *failed = exact(d->gpu, "rows_failed", &v) ? (u)v : 0;
  return OK;
}
/* xid = gpu,code,serial: delivered once per serial */
typedef struct { D device; ull type, data; u gi, ci; } Event;
R nvmlEventSetCreate(void **s) { GATE(NULL); *s = calloc(1, sizeof(ull)); return OK; }
R nvmlEventSetFree(void *s) { free(s); return OK; }
R nvmlDeviceRegisterEvents(D d, ull types, void *s) { (void)types; (void)s; WHOLE(d); return OK; }
R nvmlDeviceGetSupportedEventTypes(D d, ull *t) { WHOLE(d); *t = 0x1f; return OK; }
R nvmlEventSetWait_v2(void *s, Event *e, u ms) {
  char v[160]; u gpu = 0; ull code = 0, serial = 0, *seen = s;
  GATE(NULL);
  if (!find(v, sizeof v, "xid") || sscanf(v, "%u,%llu,%llu", &gpu, &code, &serial) != 3 || serial <= *seen) { usleep(ms * 1000); return TIMEOUT; }
  *seen = serial;
  e->device = &gpus[gpu]; e->type = 8; e->data = code; e->gi = e->ci = NONE;
  return OK;
}

/* ---- GPM: gpm.<metric id> = value, or migN.gpm.<metric id> -------------------------------------- */
typedef struct { u version, supported; } Support;
R nvmlGpmQueryDeviceSupport(D d, Support *s) { ull v; ANY(d); s->supported = exact(d->gpu, "gpm", &v) && v; return OK; }
typedef struct { double at; u gpu, gi; } GpmSample;
static u gpm_open;
u stub_gpm_open(void) { return gpm_open; }
R nvmlGpmSampleAlloc(GpmSample **s) { GATE(NULL); *s = calloc(1, sizeof **s); gpm_open++; return OK; }
R nvmlGpmSampleFree(GpmSample *s) { free(s); gpm_open--; return OK; }
R nvmlGpmSampleGet(D d, GpmSample *s) { WHOLE(d); s->at = now_s(CLOCK_MONOTONIC); s->gpu = d->gpu; s->gi = NONE; return OK; }
R nvmlGpmMigSampleGet(D d, u gi, GpmSample *s) { WHOLE(d); if (!mig_on(d->gpu)) return NOSUP; s->at = now_s(CLOCK_MONOTONIC); s->gpu = d->gpu; s->gi = gi; return OK; }
typedef struct { u id; R ret; double value; struct { char *a, *b, *c; } info; } Metric;
typedef struct { u version, n; GpmSample *s1, *s2; Metric m[333]; } MetricsGet;
R nvmlGpmMetricsGet(MetricsGet *g) {
  GATE(NULL);
  if (g->version != 1) return VERSION;
  GpmSample *s = g->s2;
  for (u i = 0; i < g->n; i++) {
    char key[96]; int slot = -1; ull gi;
    if (s->gi != NONE)
      for (u k = 0; k < MOST_MIG && slot < 0; k++) { struct dev one = {s->gpu, k}; snprintf(key, sizeof key, "mig%u.uuid", k); char v[160]; if (lookup(v, sizeof v, s->gpu, key) && (mig_number(&one, "gi", &gi) ? gi : k) == s->gi) slot = (int)k; }
    if (slot >= 0) snprintf(key, sizeof key, "mig%d.gpm.%u", slot, g->m[i].id); else snprintf(key, sizeof key, "gpm.%u", g->m[i].id);
    g->m[i].ret = number(s->gpu, key, &g->m[i].value) ? OK : NOSUP;
  }
  return OK;
}

/* ---- layouts ---------------------------------------------------------------------------------- */
size_t stub_sizeof(const char *name) {
  static const struct { const char *name; size_t size; } sizes[] = {
    {"c_nvmlMemory_t", sizeof(Mem1)}, {"c_nvmlMemory_v2_t", sizeof(Mem2)}, {"c_nvmlUtilization_t", sizeof(Util)}, {"nvmlPciInfo_t", sizeof(Pci)},
    {"c_nvmlProcessInfo_v3_t", sizeof(Proc)}, {"c_nvmlProcessUtilizationSample_t", sizeof(ProcUtil)}, {"c_nvmlSample_t", sizeof(Sample)},
    {"c_nvmlFieldValue_t", sizeof(Field)}, {"c_nvmlEventData_t", sizeof(Event)}, {"c_nvmlDeviceAttributes", sizeof(Attributes)},
    {"c_nvmlAccountingStats_t", sizeof(Account)}, {"c_nvmlGpmSupport_t", sizeof(Support)}, {"c_nvmlGpmMetric_t", sizeof(Metric)},
    {"c_nvmlGpuFabricInfo_v2_t", sizeof(FabricV2)} };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) if (!strcmp(name, sizes[i].name)) return sizes[i].size;
  return 0;
}
