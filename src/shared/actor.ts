/** The actor of a change, as the history names it. */
export interface Actor {
  /**
   * `device`: the application on a phone; `user`: a user with a token of the identity provider (section 22); `server`:
   * the application's server; `person`: a person with a console secret; `administrator`: the script; `service`: the
   * service itself, when a time has come.
   */
  kind: ActorKind;
  /** As the server states it, as the person's console secret names them, or the administrator's user name on their computer. */
  name?: string;
}

export const ACTOR_KINDS = ["device", "user", "server", "person", "administrator", "service"] as const;
export type ActorKind = (typeof ACTOR_KINDS)[number];

/** The history's data about a call, apart from the change. */
export interface AuditContext {
  actor: Actor;
  requestId?: string | null;
  /** The caller's reason. */
  reason?: string | null;
}

export const BY_CLOCK: AuditContext = { actor: { kind: "service" } };
