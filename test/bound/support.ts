import { calculateJwkThumbprint, decodeJwt } from "jose";
import { expect } from "vitest";
import { createDpopProof, type ProofKey, webCryptoProofKey } from "../../src/client/index.ts";
import { newKey } from "../dpop/support.ts";
import type { TestApplication } from "../support/application.ts";
import { callWith } from "../support/bindings.ts";
import { A_SIGNATURE, type Answer, BADGE, call, callServer, SIGN } from "../support/http.ts";

/** A phone that calls with proofs by its key, or without. */
export class Phone {
  readonly application: { id: string };
  readonly udid: string;
  readonly key: ProofKey;

  constructor(application: { id: string }, udid: string, key: ProofKey) {
    this.application = application;
    this.udid = udid;
    this.key = key;
  }

  /** The same device in the service's eyes, with another key: a thief who knows the udid, or the phone after a reset. */
  async withOtherKey(): Promise<Phone> {
    return newPhone(this.application, this.udid);
  }

  thumbprint(): Promise<string> {
    return calculateJwkThumbprint({ ...this.key.publicJwk });
  }

  /** POST with a proof for exactly this request. */
  async post(path: string, body: unknown, nonce?: string): Promise<Answer> {
    const text = JSON.stringify(body);
    return this.send(path, text, { DPoP: await this.prove(path, text, nonce) });
  }

  prove(path: string, body: string, nonce?: string): Promise<string> {
    const url = `https://badges.example${path}`;
    const { key, udid, application } = this;
    return createDpopProof({ key, applicationId: application.id, method: "POST", url, udid, body, nonce });
  }

  send(path: string, body: string, headers: Record<string, string> = {}): Promise<Answer> {
    return call("POST", path, { headers: { applicationid: this.application.id, udid: this.udid, ...headers }, body });
  }

  /** A login to a Worker with these bindings, with a proof unless another header is given in its place. */
  async logInTo(
    bindings: Partial<Env>,
    { proof, more = {}, address }: { proof?: string | undefined; more?: object; address?: string } = {},
  ): Promise<Answer> {
    const body = JSON.stringify({ userId: "alice", ...more });
    const headers = {
      applicationid: this.application.id,
      udid: this.udid,
      DPoP: proof ?? (await this.prove(BADGE, body)),
      ...(address !== undefined && { "cf-connecting-ip": address }),
    };
    return callWith(bindings, "POST", BADGE, { headers, body });
  }

  logIn(userId = "alice", more: object = {}): Promise<Answer> {
    return this.post(BADGE, { userId, ...more });
  }

  logInUnproved(userId = "alice", more: object = {}): Promise<Answer> {
    return this.send(BADGE, JSON.stringify({ userId, ...more }));
  }

  sign(more: object = {}): Promise<Answer> {
    return this.post(SIGN, { ...A_SIGNATURE, ...more });
  }

  signUnproved(more: object = {}): Promise<Answer> {
    return this.send(SIGN, JSON.stringify({ ...A_SIGNATURE, ...more }));
  }
}

export async function newPhone(application: { id: string }, udid = "phone"): Promise<Phone> {
  return new Phone(application, udid, await webCryptoProofKey((await newKey()).pair));
}

/** A phone whose badge is bound to its key. */
export async function boundPhone(application: { id: string }, udid = "phone", userId = "alice") {
  const phone = await newPhone(application, udid);
  const issued = await phone.logIn(userId);
  expect(issued.status).toBe(201);
  return { phone, badgeId: String(issued.body.badgeId), issued: issued.body };
}

/** The status and the code; of a granted call the status and the badge that it tells of. */
export function outcome({ status, body }: Answer): string {
  if (status >= 400) return `${status} ${body.error}`;
  return `${status} ${body.badgeId ?? decodeJwt(String(body.signature)).sub}`;
}

/** A 401 that says what is wrong with the proof, and nothing else: no badge number, and no nonce if none is asked for. */
export function expectInvalidProof({ status, body, headers }: Answer): void {
  expect([status, body]).toEqual([401, { error: "INVALID_PROOF" }]);
  expect(headers.get("www-authenticate")).toBe('DPoP error="invalid_dpop_proof", algs="ES256"');
  expect(headers.has("dpop-nonce")).toBe(false);
}

export async function readBadge(application: TestApplication, id: string): Promise<Record<string, unknown>> {
  return (await callServer(application, "GET", `/v1/badges/${id}`)).body;
}

export const rebind = (application: TestApplication, id: string) =>
  callServer(application, "PATCH", `/v1/badges/${id}/rebind`);
