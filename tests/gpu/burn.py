"""Keep one GPU busy through the CUDA driver alone: ``burn.py INDEX SECONDS MIB``."""

from __future__ import annotations

import ctypes
import sys
import time

# Each thread counts down; nothing is read or written, so every SM is busy and memory is quiet.
PTX = b"""
.version 6.0
.target sm_50
.address_size 64
.visible .entry spin(.param .u32 rounds)
{
  .reg .pred %p<2>;
  .reg .u32 %r<4>;
  ld.param.u32 %r1, [rounds];
  mov.u32 %r2, 0;
again:
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, %r1;
  @%p1 bra again;
  ret;
}
\0"""
ROUNDS = 20_000_000  # some tens of milliseconds per launch


def check(code: int, what: str) -> None:
    if code != 0:
        raise SystemExit(f"{what}: CUDA error {code}")


def main() -> None:
    index, seconds, mib = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    cuda = ctypes.CDLL("libcuda.so.1")
    device, context, module, function = (
        ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(),
    )  # fmt: skip
    memory = ctypes.c_uint64()
    check(cuda.cuInit(0), "cuInit")
    check(cuda.cuDeviceGet(ctypes.byref(device), index), "cuDeviceGet")
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "context")
    check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    check(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(mib << 20)), "cuMemAlloc")
    check(cuda.cuModuleLoadData(ctypes.byref(module), PTX), "cuModuleLoadData")
    check(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"spin"), "function")
    rounds = ctypes.c_uint(ROUNDS)
    arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(rounds), ctypes.c_void_p))
    print("ready", flush=True)
    end, launches = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        check(
            cuda.cuLaunchKernel(function, 2048, 1, 1, 256, 1, 1, 0, None, arguments, None),
            "cuLaunchKernel",
        )
        launches += 1
        if launches % 4 == 0:
            check(cuda.cuCtxSynchronize(), "cuCtxSynchronize")
    check(cuda.cuCtxSynchronize(), "cuCtxSynchronize")
    print("launches", launches, flush=True)


if __name__ == "__main__":
    main()
