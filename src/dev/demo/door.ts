import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ageLimits, DoorControl, type DoorOptions } from "../../examples/door-control.ts";
import type { Narrator } from "./narrator.ts";
import { isByPhone, type Presentation } from "./presentation.ts";

/** Longer than at a real door: the story shows a signature again after waiting for a status list. */
const MAX_AGE_SECONDS = 300;
/** The story's door and service are one computer. Real doors allow for clocks that differ. */
const CLOCK_TOLERANCE_SECONDS = 0;

/** A door of the building: the example's (src/examples/door-control.ts), and a cable to the network. */
export class Door {
  readonly #narrator: Narrator;
  readonly #options: DoorOptions;
  readonly #folder: string;
  #control: DoorControl | null = null;
  #isPlugged = true;
  /** Milliseconds that pass in the story and not in the world. */
  #later = 0;
  #isShown = true;

  /** A door that has nothing yet. */
  constructor(narrator: Narrator, serviceUrl: string, applicationId: string) {
    this.#narrator = narrator;
    this.#folder = mkdtempSync(join(tmpdir(), "badge-demo-door-"));
    this.#options = {
      serviceUrl,
      applicationId,
      file: join(this.#folder, "door.json"),
      log: (line) => narrator.note(`The door says: ${line}`),
      fetch: (url, init) => this.#fetch(url, init),
      now: () => Date.now() + this.#later,
    };
  }

  /** The power goes and comes back: what is left is what its file has. */
  restart(): void {
    this.#control = null;
  }

  /** Pulls its cable: from now on it reaches nothing. */
  unplug(): void {
    this.#isPlugged = false;
  }

  /** Downloads the key set, when it is time, and the status lists. @returns whether all went well */
  async refresh({ isShown = true } = {}): Promise<boolean> {
    this.#isShown = isShown;
    return (await this.#running()).refresh();
  }

  /**
   * Decides without asking the service: the service's signature says which badge presented which client signature, the
   * status list that the badge has not ended, and the client signature that the phone answered this door's challenge.
   *
   * @returns what the door does
   */
  async check(presentation: Presentation): Promise<string> {
    const control = await this.#running();
    const verified = await control.check(presentation.signature, {
      maxAgeSeconds: MAX_AGE_SECONDS,
      clockToleranceSeconds: CLOCK_TOLERANCE_SECONDS,
      clientSignature: Buffer.from(presentation.clientSignature).toString("base64"),
    });
    if (!verified.ok) return `closed: ${verified.reason}`;
    const { badgeNumber } = verified;
    return (await isByPhone(presentation, badgeNumber))
      ? `open for badge ${badgeNumber}`
      : "closed: the phone did not sign this challenge";
  }

  /**
   * Scans a code, whose text is a badge signature, as `--max-age` of the example does.
   *
   * @param laterSeconds that have passed since it was shown
   * @returns what the door does
   */
  async scan(code: string, oldestSeconds: number, laterSeconds = 0): Promise<string> {
    const control = await this.#running();
    this.#later = laterSeconds * 1000;
    const verified = await control.check(code, ageLimits(oldestSeconds));
    this.#later = 0;
    return verified.ok ? `open for badge ${verified.badgeNumber}` : `closed: ${verified.reason}`;
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #running(): Promise<DoorControl> {
    this.#control ??= await DoorControl.open(this.#options);
    return this.#control;
  }

  async #fetch(url: string, init: RequestInit): Promise<Response> {
    if (!this.#isPlugged) throw new Error("the cable is pulled");
    const response = await fetch(url, init);
    if (this.#isShown) {
      this.#narrator.sent(`GET ${new URL(url).pathname}`);
      this.#narrator.received(`${response.status} ${response.headers.get("content-type")}`);
    }
    return response;
  }
}
