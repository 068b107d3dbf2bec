// Runs the README's first three blocks in Pyodide, under node, and says what that takes.
//
//     npm install pyodide                                  # in a folder of yours; the rest is run there
//     python CHECKOUT/.github/build_core.py .
//     node CHECKOUT/benchmarks/installs/pyodide.mjs forcopt_core-*.whl
//
// It writes a line of JSON for each step. Steps of a part that needs no other package come first: each module is
// compiled, and the checker of proofs reads a proof of an integer program. Then Pyodide's builds of numpy,
// scipy, networkx, pydantic, highspy, rich and micropip are loaded from the folder `wheels`, or from Pyodide's
// network if they are not there, and typer from PyPI. It ends with 3 if they cannot be loaded, and with 1 if a
// step fails; a block that needs numba, which Pyodide has not, is no failure.

import { mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const require = createRequire(join(process.cwd(), "here.js"));
const { loadPyodide, version } = require("pyodide");
const wheel = process.argv[2];
const cache = join(process.cwd(), "wheels");
const readme = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "README.md");
const blocks = [...readFileSync(readme, "utf8").matchAll(/^```python\n(.*?)^```/gms)].map((found) => found[1]);
const megabytes = (files) => files.reduce((sum, file) => sum + statSync(file).size, 0) / 1e6;
let failed = false;

async function step(name, work) {
  const began = performance.now();
  let said;
  try {
    said = await work();
  } catch (error) {
    const lines = String(error.message).match(/^[\w.]*(Error|Exception)\b.*$/gm);
    said = { error: lines?.at(-1) ?? String(error.message) };
    failed ||= !said.error.includes("numba");
  }
  const seconds = Math.round((performance.now() - began) / 10) / 100;
  console.log(JSON.stringify({ step: name, seconds, ...said }));
  return said;
}

mkdirSync(cache, { recursive: true });
let python;
await step("interpreter", async () => {
  python = await loadPyodide({ packageCacheDir: cache, stdout: () => {}, stderr: () => {} });
  const core = dirname(require.resolve("pyodide"));
  const parts = ["pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip"].map((name) => join(core, name));
  return { version, python: python.runPython("import sys; sys.version.split()[0]"), megabytes: megabytes(parts) };
});
await step("the wheel, each module compiled", async () => {
  python.unpackArchive(new Uint8Array(readFileSync(wheel)), "zip", { extractDir: "/tmp/unpacked" });
  const compile = `
import pathlib
files = [*pathlib.Path("/tmp/unpacked").rglob("*.py")]
for f in files:
    compile(f.read_text(encoding="utf-8"), str(f), "exec")
len(files)`;
  return { modules: python.runPython(compile), megabytes: megabytes([wheel]) };
});
await step("the checker of proofs", async () => {
  const check = `
import contextlib, io, sys
sys.path.insert(0, "/tmp/unpacked")
import forcopt.check as check
with contextlib.redirect_stdout(io.StringIO()) as said:
    code = check.main(["/tmp/unpacked/forcopt/models/districting/proofs/districting-planar-16-2.vipr.gz"])
assert code == 0, said.getvalue()
sys.path.remove("/tmp/unpacked")
for name in [name for name in sys.modules if name.partition(".")[0] == "forcopt"]:
    del sys.modules[name]
said.getvalue()`;
  return { said: python.runPython(check).trim() };
});
const wanted = ["numpy", "scipy", "networkx", "pydantic", "highspy", "rich", "micropip"];
const quiet = { messageCallback: () => {}, errorCallback: () => {} };
const loaded = await step("packages", async () => {
  await python.loadPackage(wanted, quiet);
  const missing = wanted.filter((name) => !(name in python.loadedPackages));
  return missing.length ? { missing } : { megabytes: megabytes(readdirSync(cache).map((f) => join(cache, f))) };
});
if (loaded.missing || loaded.error) process.exit(3);
await step("forcopt-core", async () => {
  const place = `/tmp/${basename(wheel)}`;
  python.FS.writeFile(place, new Uint8Array(readFileSync(wheel)));
  await python.runPythonAsync(`import micropip; await micropip.install("emfs:${place}")`);
});
await step("import forcopt", () => python.runPython("import forcopt; forcopt.Model; None"));
for (const [at, block] of blocks.slice(0, 3).entries())
  await step(`block ${at + 1}`, () => python.runPython(`${block}\nNone`));
process.exit(failed ? 1 : 0);
