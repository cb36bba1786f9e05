import sys, tests.mutants as M
for x in M.ORDERED:
    by, s = M.try_out(x)
    print(f"{x.file} | {x.what} | {by} | {s:.0f}", flush=True)
