import { spawnSync } from "node:child_process";
import { PROJECT } from "./paths.ts";

/** How a commit relates to this checkout; `unknown`: one of both is not under git. */
export type Containment = "contained" | "older" | "foreign" | "unknown";

function git(...words: string[]): { status: number | null; stdout: string } {
  return spawnSync("git", words, { cwd: PROJECT, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
}

/** The commit of this checkout, whatever is changed beside it; null when it is not a clone (an archive, say). */
export function checkoutCommit(): string | null {
  // Not the repository of a folder around it.
  const { status, stdout } = git("rev-parse", "--show-cdup", "HEAD");
  const [up, commit = ""] = stdout.split("\n");
  return status === 0 && up === "" && /^[0-9a-f]{40,64}$/.test(commit) ? commit : null;
}

/** Whether this checkout contains a commit, and if not, whether that commit comes after it. */
export function containsCommit(commit: string | null): Containment {
  if (commit === null || checkoutCommit() === null) return "unknown";
  if (git("merge-base", "--is-ancestor", commit, "HEAD").status === 0) return "contained";
  return git("merge-base", "--is-ancestor", "HEAD", commit).status === 0 ? "older" : "foreign";
}
