import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { PROJECT } from "../../src/admin/platform/paths.ts";

const FOLDER = join(PROJECT, "src/verify/python");
const PYTHON = process.env.PYTHON_PATH || "python3";
const out = mkdtempSync(join(tmpdir(), "badge-wheel-"));

afterAll(() => rmSync(out, { recursive: true, force: true }));

const python = (...words: string[]): string => execFileSync(PYTHON, ["-B", ...words], { encoding: "utf8" }).trim();

/** Prints the files of a wheel whose digest in RECORD is not theirs, and how many it lists. */
const CHECK_RECORD = `
import base64, csv, hashlib, io, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
[record] = [name for name in wheel.namelist() if name.endswith(".dist-info/RECORD")]
rows = list(csv.reader(io.StringIO(wheel.read(record).decode())))
wrong = [name for name, digest, _ in rows if digest and digest != "sha256=" +
  base64.urlsafe_b64encode(hashlib.sha256(wheel.read(name)).digest()).rstrip(b"=").decode()]
print(len(rows), wrong, sorted(set(wheel.namelist()) - {row[0] for row in rows}))
`;

describe("the wheel of the verifier in Python (contract section 25)", () => {
  it("each build of the wheel has the same bytes, with the digests of its files", () => {
    const built = ["one", "two"].map((name) => {
      const folder = join(out, name);
      mkdirSync(folder);
      return join(folder, python(join(FOLDER, "build_wheel.py"), folder));
    });
    const [first = "", second = ""] = built;
    expect(first).toMatch(/badge_verify-\d+\.\d+\.\d+-py3-none-any\.whl$/);
    expect(readFileSync(first)).toEqual(readFileSync(second));
    expect(python("-c", CHECK_RECORD, first)).toBe("4 [] []");
  });

  const hasPip = spawnSync(PYTHON, ["-m", "pip", "--version"]).status === 0;

  it.runIf(hasPip)("is what pip install builds from the folder, without the network", () => {
    const target = join(out, "installed");
    const words = ["--quiet", "--no-index", "--no-deps", "--disable-pip-version-check", "--no-cache-dir"];
    python("-m", "pip", "install", ...words, "--target", target, FOLDER);
    expect(readFileSync(join(target, "badge_verify.py"))).toEqual(readFileSync(join(FOLDER, "badge_verify.py")));
    expect(existsSync(join(FOLDER, "build"))).toBe(false);
  });
});
