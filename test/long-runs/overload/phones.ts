import { z } from "zod";
import type { Answer, Call } from "../bench/send.ts";
import { Dice } from "../dice.ts";

/** What the phones of a run were told of their application. */
export interface Application {
  id: string;
  /** SPKI DER, base64. */
  publicKey: string;
}

interface Phone {
  name: string;
  badgeId: string | null;
}

/** One call of one phone. */
export interface Ask {
  phone: Phone;
  isSignature: boolean;
  call: Call;
}

const CLIENT_SIGNATURE = Buffer.alloc(72, "signature").toString("base64");
/** Shares of the calls: a new phone asks for its badge, one that has a badge signs, and the rest ask once more. */
const NEW_SHARE = 0.5;
const SIGN_SHARE = 0.4;
const WRONG_KEPT = 20;

const badgeAnswer = z.object({ badgeId: z.string().regex(/^[1-9]\d*$/) });
const signatureAnswer = z.object({ signature: z.string() });
const claims = z.object({ sub: z.string(), aud: z.string(), client_signature: z.string() });

/** The phones of a run: they call at random, remember what they were answered, and hold the service to it. */
export class Phones {
  readonly #application: Application;
  readonly #random: Dice;
  readonly #withBadge: Phone[] = [];
  readonly #unanswered = new Set<Phone>();
  readonly #holders = new Map<string, Phone>();
  #made = 0;
  /** Signatures that came, to be verified when there is time. */
  readonly signatures: string[] = [];
  /** Answers that no service may give, in words; of many the first. */
  readonly wrong: string[] = [];
  wrongCount = 0;

  constructor(application: Application, seed: number) {
    this.#application = application;
    this.#random = new Dice(seed);
  }

  next(): Ask {
    const dice = this.#random.next();
    const known = dice < NEW_SHARE ? undefined : this.#random.pick(this.#withBadge);
    if (known && dice < NEW_SHARE + SIGN_SHARE) return this.#sign(known);
    return this.#badge(known ?? { name: `phone-${this.#made++}`, badgeId: null });
  }

  /** Calls of phones that were never answered, as they make them again later. */
  asksAgain(most: number): Ask[] {
    return [...this.#unanswered].slice(0, most).map((phone) => this.#badge(phone));
  }

  /** User ID and badge number of every phone that was answered one. */
  get answered(): [userId: string, badgeId: string][] {
    return this.#withBadge.map(({ name, badgeId }) => [name, String(badgeId)]);
  }

  get unansweredCount(): number {
    return this.#unanswered.size;
  }

  /** Takes an answer; none is none. */
  note(ask: Ask, answer: Answer): void {
    if (answer.status === 0 || this.#isRefusal(answer)) return;
    try {
      if (ask.isSignature) this.#noteSignature(ask.phone, answer);
      else this.#noteBadge(ask.phone, answer);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#noteWrong(`${ask.phone.name}: ${reason}: ${answer.status} ${answer.body.slice(0, 200)}`);
    }
  }

  #noteWrong(text: string): void {
    this.wrongCount++;
    if (this.wrong.length < WRONG_KEPT) this.wrong.push(text);
  }

  /** An overloaded service may say so, if it says when to come again (contract section 6). */
  #isRefusal({ status, body, retryAfter }: Answer): boolean {
    if (status !== 429 && status !== 503) return false;
    if (retryAfter === null || !/^\d+$/.test(retryAfter)) this.#noteWrong(`no Retry-After: ${status} ${body}`);
    return true;
  }

  #noteBadge(phone: Phone, answer: Answer): void {
    if (answer.status !== 200 && answer.status !== 201) throw new Error("not a badge");
    const { badgeId } = badgeAnswer.parse(JSON.parse(answer.body));
    if (answer.status === 201 && phone.badgeId !== null) throw new Error(`had ${phone.badgeId} and got a new badge`);
    if (phone.badgeId !== null && phone.badgeId !== badgeId) throw new Error(`had ${phone.badgeId}`);
    const holder = this.#holders.get(badgeId);
    if (holder !== undefined && holder !== phone) throw new Error(`the number of ${holder.name}`);
    this.#unanswered.delete(phone);
    if (phone.badgeId !== null) return;
    phone.badgeId = badgeId;
    this.#holders.set(badgeId, phone);
    this.#withBadge.push(phone);
  }

  #noteSignature(phone: Phone, answer: Answer): void {
    if (answer.status !== 200) throw new Error("not a signature");
    const { signature } = signatureAnswer.parse(JSON.parse(answer.body));
    const payload = Buffer.from(signature.split(".")[1] ?? "", "base64url").toString();
    const { sub, aud, client_signature: signed } = claims.parse(JSON.parse(payload));
    if (sub !== phone.badgeId) throw new Error(`has ${phone.badgeId}, signed for ${sub}`);
    if (aud !== this.#application.id || signed !== CLIENT_SIGNATURE) throw new Error("signed something else");
    this.signatures.push(signature);
  }

  #badge(phone: Phone): Ask {
    if (phone.badgeId === null) this.#unanswered.add(phone);
    return { phone, isSignature: false, call: this.#call("/v1/badge", phone, { userId: phone.name }) };
  }

  #sign(phone: Phone): Ask {
    return { phone, isSignature: true, call: this.#call("/v1/badge/sign", phone, { base64: CLIENT_SIGNATURE }) };
  }

  #call(path: string, { name }: Phone, body: unknown): Call {
    const headers = { applicationid: this.#application.id, udid: `udid of ${name}` };
    return { method: "POST", path, headers, body: JSON.stringify(body) };
  }
}
