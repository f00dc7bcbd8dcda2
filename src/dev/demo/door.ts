import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ageLimits, DoorControl, type DoorOptions } from "../../examples/door-control.ts";
import type { Narrator } from "./narrator.ts";
import { isByPhone, type Presentation } from "./presentation.ts";

/** Longer than at a real door: the story presents a signature again after waiting for a status list. */
const MAX_AGE_SECONDS = 300;
/** The story's door and service share a clock. Real doors allow for clocks that differ. */
const CLOCK_TOLERANCE_SECONDS = 0;

/** A door of the building: the example (src/examples/door-control.ts), and a network cable that can be pulled. */
export class Door {
  readonly #narrator: Narrator;
  readonly #options: DoorOptions;
  readonly #folder: string;
  #control: DoorControl | null = null;
  #isPlugged = true;
  /** Milliseconds that pass only in the story. */
  #later = 0;
  #isShown = true;

  /** A new door, which has downloaded nothing yet. */
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

  /** The power fails and comes back: only the file is left. */
  restart(): void {
    this.#control = null;
  }

  /** Pulls the network cable. */
  unplug(): void {
    this.#isPlugged = false;
  }

  /** Downloads the status lists, and the key set if it is due. @returns whether everything succeeded */
  async refresh({ isShown = true } = {}): Promise<boolean> {
    this.#isShown = isShown;
    return (await this.#running()).refresh();
  }

  /**
   * Decides without asking the service. The service's signature shows which badge presented which client signature, the
   * status list that the badge has not ended, and the client signature that the phone responded to this door's challenge.
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
