import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * `npm run -s verify:python` and `npm run -s verify:go` run every test vector through the verifier in that language. They exit
 * non-zero on a difference, and if the language is not installed.
 */

const VERIFIERS = fileURLToPath(new URL("../verify/", import.meta.url));

interface Command {
  program: string;
  words: readonly string[];
  folder: string;
  /** In addition to this process's. */
  environment: Readonly<Record<string, string>>;
}

interface Language {
  name: string;
  missing: string;
  /**
   * @param vectors a folder with vectors.json and vectors-possession.json
   * @returns null if the language, or what the verifier needs of it, is not installed
   */
  command: (vectors: string) => Command | null;
}

const PYTHON: Language = {
  name: "python",
  missing:
    "There is no python3 with the package cryptography: install python3-cryptography (Debian) or run " +
    "pip install cryptography. PYTHON_PATH names another Python.",
  command: (vectors) => {
    const program = findPython();
    // -B writes no compiled copy next to the source.
    const words = ["-B", "run_vectors.py", vectors];
    return program === null ? null : { program, words, folder: "python", environment: {} };
  },
};

const GO: Language = {
  name: "go",
  missing: "There is no Go 1.19 or later: install golang-go (Debian) or see https://go.dev/doc/install.",
  command: (vectors) => {
    // The standard library is enough, so nothing may be downloaded. -count=1 keeps Go from repeating a cached result.
    const environment = { VECTORS: vectors, GOFLAGS: "-mod=mod", GOPROXY: "off", GOTOOLCHAIN: "local", GOWORK: "off" };
    const words = ["test", "-count=1", "-v", "."];
    return runs("go", "version") ? { program: "go", words, folder: "go", environment } : null;
  },
};

export const LANGUAGES: readonly Language[] = [PYTHON, GO];

/** Runs the vectors in a folder; null if the language is not installed. */
export function runVectors(language: Language, vectors: string): { status: number; output: string } | null {
  const command = language.command(vectors);
  if (command === null) return null;
  const { status, stdout, stderr } = spawnSync(command.program, command.words, {
    cwd: join(VERIFIERS, command.folder),
    env: { ...process.env, ...command.environment },
    encoding: "utf8",
  });
  return { status: status ?? 1, output: stdout + stderr };
}

/** `PYTHON_PATH`, else the first on the PATH, else the system's, for which Debian's packages are. */
export function findPython(): string | null {
  const wanted = process.env.PYTHON_PATH;
  const candidates = wanted ? [wanted] : ["python3", "/usr/bin/python3"];
  return candidates.find((program) => runs(program, "-c", "import cryptography")) ?? null;
}

function runs(program: string, ...words: string[]): boolean {
  return spawnSync(program, words, { stdio: "ignore" }).status === 0;
}

function main(name: string | undefined): number {
  const language = LANGUAGES.find((each) => each.name === name);
  if (language === undefined) {
    console.error(`Name one of ${LANGUAGES.map((each) => each.name).join(", ")}.`);
    return 1;
  }
  const result = runVectors(language, VERIFIERS);
  if (result === null) console.error(language.missing);
  else process.stdout.write(result.output);
  return result?.status ?? 1;
}

if (import.meta.main) process.exit(main(process.argv[2]));
