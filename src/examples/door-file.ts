import { open, readFile, rename } from "node:fs/promises";
import { dirname } from "node:path";

/** What a door needs to work without the network, in one file. */
export interface DoorFile {
  applicationId: string;
  /** The key set of the application, as downloaded. */
  keys: { keys: readonly unknown[] };
  /** Status lists as downloaded, by their URI. */
  statusLists: Readonly<Record<string, string>>;
  /** Deltas since the oldest list, as received, oldest first. */
  deltas: readonly string[];
}

/**
 * @returns null if there is no file
 * @throws Error when nothing in the file can be used
 */
export async function readDoorFile(path: string): Promise<DoorFile | null> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
  return parseDoorFile(JSON.parse(text));
}

/**
 * Replaces the file atomically: after a crash or a power cut it has either the old content or the new.
 */
export async function writeDoorFile(path: string, content: DoorFile): Promise<void> {
  // Two doors may share a file.
  const temporary = `${path}.${process.pid}.new`;
  const file = await open(temporary, "w", 0o600);
  try {
    await file.writeFile(`${JSON.stringify(content)}\n`);
    // Otherwise the name could reach the disk before the content.
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
  const folder = await open(dirname(path), "r");
  await folder.sync().finally(() => folder.close());
}

function parseDoorFile(content: unknown): DoorFile {
  const keys = parseKeySet(member(content, "keys"));
  const applicationId = member(content, "applicationId");
  const statusLists = member(content, "statusLists");
  if (keys === null || typeof applicationId !== "string") throw new Error("not a door's file");
  if (typeof statusLists !== "object" || statusLists === null) throw new Error("not a door's file");
  const deltas = member(content, "deltas");
  const received = Array.isArray(deltas) ? deltas.filter((each) => typeof each === "string") : [];
  const texts = Object.entries(statusLists).filter((entry): entry is [string, string] => typeof entry[1] === "string");
  return { applicationId, keys, statusLists: Object.fromEntries(texts), deltas: received };
}

/** A JWK Set with keys; null for anything else. The verifier checks each key. */
export function parseKeySet(content: unknown): DoorFile["keys"] | null {
  const keys = member(content, "keys");
  return Array.isArray(keys) && keys.length > 0 ? { keys } : null;
}

function member(content: unknown, name: string): unknown {
  return typeof content === "object" && content !== null
    ? new Map<string, unknown>(Object.entries(content)).get(name)
    : undefined;
}
