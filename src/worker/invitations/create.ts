import { digestOf } from "../../shared/digest.ts";
import { newInvitationToken } from "../../shared/identifiers.ts";
import type { AllocationResult, AllocationRules } from "../allocator/allocations.ts";
import type { ReserveRequest } from "../allocator/allocator.ts";
import type { Application } from "../applications/registry.ts";
import type { Context } from "../context.ts";
import { log } from "../log.ts";
import { Unavailable } from "../platform.ts";
import { Refusal } from "../refusal.ts";
import { writeRevocation } from "../storage/invitations.ts";
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
    reserve(context, application.id, rules, { invitation, creatorDevice, expiresAt, expiresAtTime, createdAt }),
  );
  switch (result.kind) {
    case "written":
    case "existing":
      return { id, number: result.number, expiresAt };
    case "exhausted":
      throw new Refusal("NUMBERS_EXHAUSTED");
    case "contended":
      throw new Refusal("UNAVAILABLE", { detail: "contended" });
    case "unavailable":
      throw new Unavailable("allocator", undefined);
  }
}

/**
 * When the object fails it may have reserved the number all the same, and believe that the token was told. Nobody will
 * hear of the token, so the invitation ends; best effort, because what failed for one call may fail for the next.
 */
async function reserve(
  context: Context,
  applicationId: string,
  rules: AllocationRules,
  request: ReserveRequest,
): Promise<AllocationResult> {
  try {
    return await context.allocator.reserve(applicationId, rules, request);
  } catch (error) {
    context.defer(
      writeRevocation(context.db, request.invitation, context.now()).catch((fault) => {
        log("warn", { event: "untold-invitation-left", application: applicationId, error: fault });
      }),
    );
    throw error;
  }
}
