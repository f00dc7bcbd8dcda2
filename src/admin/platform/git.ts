import { spawnSync } from "node:child_process";
import { PROJECT } from "./paths.ts";

/** How a commit relates to this checkout; `unknown`: one of both is not under git. */
export type Containment = "contained" | "older" | "foreign" | "unknown";

const git = (cwd: string, ...words: string[]) =>
  spawnSync("git", words, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });

/** The commit of this checkout, whatever is changed beside it; null when it is not a clone (an archive, say). */
export function checkoutCommit(folder = PROJECT): string | null {
  // Not the repository of a folder around it.
  const { status, stdout } = git(folder, "rev-parse", "--show-cdup", "HEAD");
  const [up, commit = ""] = stdout.split("\n");
  return status === 0 && up === "" && /^[0-9a-f]{40,64}$/.test(commit) ? commit : null;
}

/** Whether this checkout contains a commit, and if not, whether that commit comes after it. */
export function containsCommit(commit: string | null, folder = PROJECT): Containment {
  if (commit === null || checkoutCommit(folder) === null) return "unknown";
  if (git(folder, "merge-base", "--is-ancestor", commit, "HEAD").status === 0) return "contained";
  return git(folder, "merge-base", "--is-ancestor", "HEAD", commit).status === 0 ? "older" : "foreign";
}
