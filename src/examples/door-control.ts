import { setTimeout as sleep } from "node:timers/promises";
import {
  applyStatusDelta,
  createChallenge,
  type Expectations,
  type JwkSet,
  type PresentedBadge,
  type RefusedBadgeSignature,
  type RefusedPossession,
  readStatusDelta,
  readStatusList,
  type StatusDelta,
  type StatusList,
  type StatusListFailure,
  type VerifiedBadgeSignature,
  type VerifiedPossession,
  verifyBadgeSignature,
  verifyPossession,
} from "../verify/index.ts";
import { type DoorFile, parseKeySet, readDoorFile, writeDoorFile } from "./door-file.ts";
import { waitForDelta } from "./door-live.ts";

/** Half of the `ttl` of status lists, so that a revoked badge is refused within two minutes (contract section 14). */
const REFRESH_SECONDS = 30;
/** The key set's `max-age` (contract section 3). */
const KEY_SET_SECONDS = 300;
const FIRST_RETRY_SECONDS = 2;
const MAX_RETRY_SECONDS = 60;
const DOWNLOAD_TIMEOUT_SECONDS = 10;
/** More than any list or key set of the service. */
const MAX_DOWNLOAD_BYTES = 524_288;
/** Over a hundred million badges. */
const MAX_STATUS_LISTS = 1000;
/** More than the phones at one door can respond to within a minute. */
const MAX_CHALLENGES = 10_000;
/** Deltas are kept until all lists contain them, which takes half a minute unless no list can be downloaded. */
const MAX_DELTAS = 1000;
/** A data centre's lists may be half a minute old. Downloading them at once again is useless, because they may lack the change. */
const LISTS_WAIT_SECONDS = 10;
/** A list whose content has not changed is written only this often, because flash memory wears out. */
const SAVE_UNCHANGED_SECONDS = 600;
/** More than a cached list can be older than what the door has: it is at most half a minute old. */
const LATER_MILLISECONDS = 60_000;

export interface DoorOptions {
  /** The service's PUBLIC_URL, without a slash at the end. The URIs of its status lists begin with it. */
  serviceUrl: string;
  applicationId: string;
  /** The door's own secret, with which it receives changes at once (contract section 26). Null to use only the lists. */
  secret?: string | null;
  /** Stores what was downloaded. */
  file: string;
  /** Prints one line about each problem and each change. */
  log: (line: string) => void;
  fetch?: (
    url: string,
    init: { signal?: AbortSignal | null; redirect?: RequestRedirect; headers?: HeadersInit },
  ) => Promise<Response>;
  /** Milliseconds since 1970-01-01 UTC. */
  now?: () => number;
  /** Milliseconds since any fixed moment, for intervals: a clock that is set back must not delay a refresh. */
  elapsed?: () => number;
}

/** The caller's expectations; the door adds those from what it has downloaded. */
type OwnExpectations = Partial<Omit<Expectations, "keys" | "applicationId" | "now" | "statusLists">>;

/** Maximum difference between the clocks of service and door. It is less if the maximum age of a signature is less (`ageLimits`). */
const CLOCK_TOLERANCE_SECONDS = 60;

/**
 * The oldest badge signature that opens, by the door's own clock. The verifier adds its tolerance to the age, because the
 * door's clock may be ahead. Here the age includes the tolerance, so that an older photograph of a code is refused.
 */
export function ageLimits(
  oldestSeconds: number,
): Required<Pick<Expectations, "maxAgeSeconds" | "clockToleranceSeconds">> {
  const clockToleranceSeconds = Math.min(CLOCK_TOLERANCE_SECONDS, oldestSeconds);
  return { clockToleranceSeconds, maxAgeSeconds: oldestSeconds - clockToleranceSeconds };
}

/** A list as the door uses it, and as it was downloaded. */
interface KeptList {
  jwt: string;
  /** The list with the deltas received since. */
  list: StatusList;
  /** The last change of the list as it was downloaded; null if the list does not name it. */
  change: number | null;
}

/**
 * Decides at a door, without asking the service. It keeps the application's key set and status lists fresh, in memory and
 * in a file, so that it still decides when the network or the service fails, also after a restart.
 */
export class DoorControl {
  readonly #options: Required<DoorOptions>;
  #keys: JwkSet = { keys: [] };
  #areKeysDue = true;
  #keysRefreshedAt = 0;
  readonly #lists = new Map<string, KeptList>();
  /** Deltas since the oldest list, oldest first. */
  #deltas: { jwt: string; delta: StatusDelta }[] = [];
  /** The verifier's input; built again when a list changes, not for each badge. */
  #statusLists: Record<string, StatusList> = {};
  /** `#content` as it was last written, so that an unchanged door writes nothing. */
  #saved = this.#content();
  #savedAt = Number.NEGATIVE_INFINITY;
  #saving: Promise<void> = Promise.resolve();
  #refreshing: Promise<boolean> | null = null;
  /** Whether it was logged that there is no status list to start from. */
  #isListMissing = false;
  /**
   * Challenges that wait for a response, oldest first. There are several, so that a request for another challenge, or a
   * malformed response, does not invalidate the one to which a phone is just responding.
   */
  readonly #challenges = new Set<string>();
  readonly #stopped = new AbortController();

  private constructor(options: DoorOptions) {
    this.#options = {
      fetch: (url, init) => fetch(url, init),
      now: Date.now,
      elapsed: () => performance.now(),
      ...options,
      secret: parseSecret(options.secret ?? ""),
    };
  }

  /**
   * Starts with the content of the file; nothing is downloaded yet.
   *
   * @throws Error when the file is another application's: its door would lose what it needs without the network; or when the
   *   secret cannot be one
   */
  static async open(options: DoorOptions): Promise<DoorControl> {
    const door = new DoorControl(options);
    const { file, applicationId, log } = options;
    const ignore = (error: unknown): void => {
      log(`${file} is ignored: ${describeError(error)}`);
    };
    const stored = await readDoorFile(file).catch(ignore);
    if (!stored) return door;
    if (stored.applicationId !== applicationId) {
      throw new Error(`${file} is of another application: give another --file`);
    }
    await door.#load(stored).catch(ignore);
    // So the content of the file is not written again at once.
    door.#saved = door.#content();
    return door;
  }

  /** Verifies a badge signature with what the door knows now. */
  async check(jwt: string, expected: OwnExpectations = {}): Promise<VerifiedBadgeSignature | RefusedBadgeSignature> {
    return this.#noteUnknownKey(await verifyBadgeSignature(jwt, this.#expectations(expected)));
  }

  /**
   * Makes a challenge for a phone at this door (contract section 15).
   *
   * @param doorId see `createChallenge`
   */
  challenge(doorId: string): string {
    const challenge = createChallenge({ doorId, now: this.#options.now() });
    this.#challenges.add(challenge);
    for (const oldest of this.#challenges) {
      if (this.#challenges.size <= MAX_CHALLENGES) break;
      this.#challenges.delete(oldest);
    }
    return challenge;
  }

  /** Verifies a badge signature, and that the phone that presents it holds its key. Each challenge serves once. */
  async checkPhone(
    presented: PresentedBadge,
    doorId: string,
    expected: OwnExpectations = {},
  ): Promise<VerifiedPossession | RefusedPossession> {
    const named = challengeOf(presented.response);
    // Before the first await, so that only one of two simultaneous presentations gets the challenge.
    const challenge = this.#challenges.delete(named) ? named : "";
    const all = { ...this.#expectations(expected), doorId, challenge };
    return this.#noteUnknownKey(await verifyPossession(presented, all));
  }

  #expectations(expected: OwnExpectations): Expectations {
    return {
      ...expected,
      keys: this.#keys,
      applicationId: this.#options.applicationId,
      now: this.#options.now(),
      statusLists: this.#statusLists,
    };
  }

  /** The next refresh downloads the keys after a JWT with an unknown key, because a new key may have been published. */
  #noteUnknownKey<T extends { ok: boolean; reason?: string }>(result: T): T {
    if (result.reason === "unknown-key") this.#areKeysDue = true;
    return result;
  }

  /** A line for the terminal: how many keys and status lists the door has, and how old they are. */
  describe(): string {
    const issued = [...this.#lists.values()].map(({ list }) => list.issuedAt);
    const ageSeconds = Math.round((this.#options.now() - Math.min(...issued)) / 1000);
    const age = issued.length === 0 ? "" : ` (the oldest is ${ageSeconds} s old)`;
    return `keys: ${this.#keys.keys.length}, status lists: ${issued.length}${age}`;
  }

  /** Refreshes until `stop`. After a failure it retries with growing delays and jitter. */
  async run(): Promise<void> {
    const { signal } = this.#stopped;
    for (let failures = 0; !signal.aborted; ) {
      failures = (await this.refresh()) ? 0 : failures + 1;
      const seconds = failures === 0 ? REFRESH_SECONDS : retrySeconds(failures);
      await sleep(seconds * 1000 * (0.5 + Math.random() / 2), undefined, { signal }).catch(() => undefined);
    }
  }

  /**
   * Receives every change of status at once, until `stop`. `run` must go on refreshing the lists, because they limit how long
   * the door may work without the service.
   *
   * @throws Error without a secret
   */
  async listen(): Promise<void> {
    const { signal } = this.#stopped;
    for (let failures = 0; !signal.aborted; ) {
      const result = await this.#listenOnce();
      if (result === "received") {
        if (failures > 0) this.#options.log("connected again");
        failures = 0;
        continue;
      }
      failures = result === "failed" ? failures + 1 : 0;
      const seconds = typeof result === "number" ? result : retrySeconds(Math.max(1, failures));
      await sleep(seconds * 1000 * (0.5 + Math.random() / 2), undefined, { signal }).catch(() => undefined);
    }
  }

  /** @returns the outcome, or after how many seconds to call again */
  async #listenOnce(): Promise<"received" | "failed" | number> {
    const { serviceUrl, applicationId, secret, log } = this.#options;
    if (secret === null) throw new Error("a door without a secret cannot listen");
    const have = this.#lastChange();
    if (have === null) {
      this.#noteMissingList();
      return 1;
    }
    this.#isListMissing = false;
    try {
      const result = await waitForDelta({
        ...{ serviceUrl, applicationId, secret, have, readText },
        keys: this.#keys,
        signal: this.#stopped.signal,
        fetch: this.#options.fetch,
      });
      if (result.kind === "failed") {
        log(`not connected: ${result.reason}; the lists are used`);
        if (result.isUnknownKey) {
          // A new key may sign before the next refresh (`key rotate --now`).
          this.#areKeysDue = true;
          await this.refresh();
        }
        return result.waitSeconds ?? "failed";
      }
      return await this.#receive(result, have);
    } catch (error) {
      if (!this.#stopped.signal.aborted) log(`not connected: ${describeError(error)}; the lists are used`);
      return "failed";
    }
  }

  /** Logs once that there are no lists, unless they are being downloaded. */
  #noteMissingList(): void {
    if (this.#isListMissing || this.#lists.size > 0 || this.#refreshing !== null) return;
    this.#isListMissing = true;
    this.#options.log("not connected: there are no status lists; does the application publish them (--status-list)?");
  }

  /** Applies a delta to the lists, or downloads the lists again if it does not fit. */
  async #receive({ jwt, delta }: { jwt: string; delta: StatusDelta }, have: number): Promise<"received" | number> {
    const applied = [...this.#lists].map(([uri, kept]) => ({ uri, kept, list: applyStatusDelta(kept.list, delta) }));
    const isLacking = delta.since > have || delta.change < have || applied.some(({ list }) => list === null);
    if (isLacking) {
      this.#options.log(`changes up to ${delta.change}: the lists are needed again`);
      // They may have changes that a restored D1 has lost.
      if (delta.change < have) this.#forgetChanges();
      await this.refresh();
      const last = this.#lastChange() ?? 0;
      // A cache may still have the lists of before a restore.
      const isOutdated = last < delta.since || (delta.change < have && last >= have);
      return isOutdated ? LISTS_WAIT_SECONDS : "received";
    }
    for (const { uri, kept, list } of applied) if (list !== null) this.#setList(uri, { ...kept, list });
    if (delta.change > have) this.#deltas = [...this.#deltas, { jwt, delta }].slice(-MAX_DELTAS);
    if (delta.entries.length > 0) {
      this.#options.log(`change ${delta.change}: ${delta.entries.length} badges have another status`);
      await this.#save(true);
    }
    // An application without changes responds at once.
    return delta.change === 0 ? LISTS_WAIT_SECONDS : "received";
  }

  /** The last change that all lists have; null if a list does not name it, or there are no lists. */
  #lastChange(): number | null {
    const changes = [...this.#lists.values()].map(({ list }) => list.change);
    return changes.reduce((least: number | null, change) => {
      return least === null || change === null ? null : Math.min(least, change);
    }, changes[0] ?? null);
  }

  /** The next lists replace these, even if their change number is lower. */
  #forgetChanges(): void {
    this.#deltas = [];
    for (const [uri, kept] of this.#lists) this.#setList(uri, { ...kept, list: { ...kept.list, change: null } });
  }

  #setList(uri: string, kept: KeptList): void {
    this.#lists.set(uri, kept);
    this.#statusLists = { ...this.#statusLists, [uri]: kept.list };
  }

  /** Ends `run`, `listen` and their downloads. */
  stop(): void {
    this.#stopped.abort();
  }

  /**
   * Downloads every status list, and the key set if it is due. What cannot be downloaded or verified changes nothing. Joins
   * a refresh that is running.
   *
   * @returns whether everything was downloaded and genuine
   */
  refresh(): Promise<boolean> {
    this.#refreshing ??= this.#refreshOnce().finally(() => {
      this.#refreshing = null;
    });
    return this.#refreshing;
  }

  async #refreshOnce(): Promise<boolean> {
    const keysAgeMilliseconds = this.#options.elapsed() - this.#keysRefreshedAt;
    if (keysAgeMilliseconds >= KEY_SET_SECONDS * 1000) this.#areKeysDue = true;
    const areKeysFine = !this.#areKeysDue || (await this.#attempt(() => this.#refreshKeys()));
    // Nothing verifies without keys.
    const areListsFine = this.#keys.keys.length > 0 && (await this.#attempt(() => this.#refreshLists()));
    const isFine = areKeysFine && areListsFine;
    await this.#save(isFine);
    return isFine;
  }

  async #attempt(step: () => Promise<boolean>): Promise<boolean> {
    try {
      return await step();
    } catch (error) {
      if (!this.#stopped.signal.aborted) this.#options.log(`not refreshed: ${describeError(error)}`);
      return false;
    }
  }

  /** @throws Error when a delta cannot be verified: without its changes, the lists could open for a revoked badge */
  async #load(file: DoorFile): Promise<void> {
    this.#keys = file.keys;
    const uri = `${this.#applicationUrl()}/status`;
    for (const jwt of file.deltas) {
      const read = await readStatusDelta(jwt, { keys: file.keys, uri });
      if (!read.ok) throw new Error(`a stored change is refused (${read.reason})`);
      this.#deltas.push({ jwt, delta: read.delta });
    }
    for (const [list, jwt] of Object.entries(file.statusLists)) {
      // A list of the service's former address would never be current again.
      if (list.startsWith(`${uri}/`)) await this.#keepList(list, jwt);
    }
  }

  async #refreshKeys(): Promise<boolean> {
    const url = `${this.#applicationUrl()}/jwks.json`;
    const text = await this.#download(url);
    if (text === null) throw new Error(`${url} does not exist: is the application ID right?`);
    const keys = parseKeySet(JSON.parse(text));
    if (keys === null) throw new Error(`${url} has no keys`);
    this.#keys = keys;
    this.#keysRefreshedAt = this.#options.elapsed();
    this.#areKeysDue = false;
    return true;
  }

  /** Lists are numbered from 0 to the first one that does not exist. */
  async #refreshLists(): Promise<boolean> {
    let isFine = true;
    let index = 0;
    for (; index < MAX_STATUS_LISTS; index++) {
      const uri = `${this.#applicationUrl()}/status/${index}`;
      const jwt = await this.#download(uri);
      if (jwt === null) break;
      if (!(await this.#keepList(uri, jwt))) isFine = false;
    }
    // A list that is not kept may lack any of them.
    if (this.#lists.size >= index) this.#deltas = this.#deltas.filter(({ delta }) => this.#isNeeded(delta));
    return isFine;
  }

  /** Whether a list, as it was downloaded, may lack the delta's changes. */
  #isNeeded({ change, issuedAt }: StatusDelta): boolean {
    return [...this.#lists.values()].some(
      (kept) => change > (kept.change ?? 0) && kept.list.issuedAt < issuedAt + LATER_MILLISECONDS,
    );
  }

  /**
   * Keeps a genuine list, unless it could hide a known revocation. It is refused if its `iat` is older than the present list's. It
   * is also refused if its `change`, with the deltas, is lower than what is known: caches and data centres have lists of nearly the
   * same time with different content. Only a list a minute later than everything known may have a lower one: the service has lost
   * changes (contract section 21).
   */
  async #keepList(uri: string, jwt: string): Promise<boolean> {
    const read = await readStatusList(jwt, { keys: this.#keys, uri });
    if (!read.ok) {
      if (read.reason === "unknown-key") this.#areKeysDue = true;
      this.#options.log(`${uri} is refused (${read.reason}); the one before stays${REMEDIES[read.reason] ?? ""}`);
      return false;
    }
    const known = this.#lists.get(uri);
    if (known !== undefined && known.list.issuedAt > read.list.issuedAt) {
      this.#options.log(`${uri} is older than the one before, which stays`);
      return false;
    }
    const { change, issuedAt } = read.list;
    const last = this.#deltas.at(-1)?.delta;
    const isLater = issuedAt >= Math.max(known?.list.issuedAt ?? 0, last?.issuedAt ?? 0) + LATER_MILLISECONDS;
    const list = isLater
      ? read.list
      : this.#deltas.reduce((before, { delta }) => applyStatusDelta(before, delta) ?? before, read.list);
    if (isLater || (list.change ?? 0) >= Math.max(known?.list.change ?? 0, last?.change ?? 0)) {
      this.#setList(uri, { jwt, list, change });
    } else if (known === undefined) {
      this.#options.log(`${uri} lacks changes that are known, so it is not used until a newer one is downloaded`);
    }
    return true;
  }

  /** @returns null for 404 */
  async #download(url: string): Promise<string | null> {
    const signal = AbortSignal.any([this.#stopped.signal, AbortSignal.timeout(DOWNLOAD_TIMEOUT_SECONDS * 1000)]);
    const response = await this.#options.fetch(url, { signal, redirect: "error" });
    const text = await readText(response);
    if (response.status === 404) return null;
    if (response.status !== 200) throw new Error(`${url} responded with ${response.status}`);
    return text;
  }

  /** One at a time: both would write the same temporary file, and the older content could come last. */
  #save(isFine: boolean): Promise<void> {
    this.#saving = this.#saving.then(() => this.#saveOnce(isFine));
    return this.#saving;
  }

  async #saveOnce(isFine: boolean): Promise<void> {
    const content = this.#content();
    const isDue = isFine && this.#options.elapsed() - this.#savedAt >= SAVE_UNCHANGED_SECONDS * 1000;
    if (content === this.#saved && !isDue) return;
    const { applicationId, file } = this.#options;
    const statusLists = Object.fromEntries([...this.#lists].map(([uri, { jwt }]) => [uri, jwt]));
    try {
      const deltas = this.#deltas.map(({ jwt }) => jwt);
      await writeDoorFile(file, { applicationId, keys: this.#keys, statusLists, deltas });
      this.#saved = content;
      this.#savedAt = this.#options.elapsed();
    } catch (error) {
      this.#options.log(`${file} was not written: ${describeError(error)}`);
    }
  }

  /** The content that decisions depend on, without the times of the lists. */
  #content(): string {
    const statuses = [...this.#lists].map(([uri, { list }]) => [uri, Buffer.from(list.statuses).toString("base64")]);
    return JSON.stringify([this.#keys, statuses]);
  }

  #applicationUrl(): string {
    return `${this.#options.serviceUrl}/v1/applications/${this.#options.applicationId}`;
  }
}

/** What the person who set up the door can do about a refused list. */
const REMEDIES: { [reason in StatusListFailure]?: string } = {
  "wrong-uri":
    ". It names another address: give the service's URL exactly as its PUBLIC_URL has it, with the same host (localhost is not 127.0.0.1)",
};

/**
 * @returns null without a secret
 * @throws Error when it cannot be sent in a header. Without this check, the error of each call would show it in the log.
 */
function parseSecret(text: string): string | null {
  const secret = text.trim();
  if (!/^[ -~]*$/.test(secret)) throw new Error("the secret is not one line of printable ASCII characters");
  return secret === "" ? null : secret;
}

/** The challenge that an unverified response names; empty if it is not a response. */
function challengeOf(response: string): string {
  try {
    const claims: unknown = JSON.parse(Buffer.from(response.split(".")[1] ?? "", "base64url").toString());
    const isNamed = typeof claims === "object" && claims !== null && "challenge" in claims;
    return isNamed && typeof claims.challenge === "string" ? claims.challenge : "";
  } catch {
    return "";
  }
}

/** 2, 4, 8 and so on, up to 60. */
function retrySeconds(failures: number): number {
  return Math.min(FIRST_RETRY_SECONDS * 2 ** (failures - 1), MAX_RETRY_SECONDS);
}

/** Stops at the limit, because a proxy may send anything. */
async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > MAX_DOWNLOAD_BYTES) throw new Error(`${response.url} is larger than anything of the service`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // The message of fetch says only that it failed; the cause has the reason.
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}
