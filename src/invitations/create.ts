import type { Application } from "../applications/registry.ts";
import type { Context } from "../context.ts";
import { digestOf } from "../digest.ts";
import { newInvitationToken } from "../identifiers.ts";
import { Unavailable } from "../platform.ts";
import { Refusal } from "../refusal.ts";
import { withFreedNumbers } from "./expire.ts";

export interface CreatedInvitation {
  /** The invitation token. Nothing keeps it but its digest. */
  id: string;
  number: number;
  expiresAt: string;
}

/** Reserves a number until somebody claims it, the invitation is revoked, or its time is over (contract section 5). */
export async function createInvitation(
  context: Context,
  application: Application,
  request: { device: string; expiresAt: string; expiresAtTime: number },
): Promise<CreatedInvitation> {
  const { device: creatorDevice, expiresAt, expiresAtTime } = request;
  const id = newInvitationToken();
  const invitation = await digestOf(id);
  const createdAt = context.now();
  const result = await withFreedNumbers(context, application, (rules) =>
    context.allocator.reserve(application.id, rules, {
      invitation,
      creatorDevice,
      expiresAt,
      expiresAtTime,
      createdAt,
    }),
  );
  switch (result.kind) {
    case "written":
    case "existing":
      return { id, number: result.number, expiresAt };
    case "exhausted":
      throw new Refusal("numbers-exhausted");
    case "unavailable":
      throw new Unavailable("allocator", undefined);
  }
}
