/** Who makes a change, as the history names it (contract section 23). */
export interface Actor {
  /**
   * `device`: the application on somebody's phone; `user`: a person with a token of the identity provider (section 22);
   * `server`: the application's server; `person`: somebody with a console secret; `administrator`: the script; `service`: the
   * clock.
   */
  kind: ActorKind;
  /** Of a server what it says; of a person the console secret's name; of an administrator the terminal's user. */
  name?: string;
}

export const ACTOR_KINDS = ["device", "user", "server", "person", "administrator", "service"] as const;
export type ActorKind = (typeof ACTOR_KINDS)[number];

/** What a console secret may do (contract section 24). */
export const ROLES = ["viewer", "reception", "operator"] as const;
export type Role = (typeof ROLES)[number];

/** What a call does, as far as roles tell calls apart: it reads, creates or revokes invitations, or changes anything else. */
export type Permission = "read" | "invite" | "change";

const ROLE_PERMISSIONS: Readonly<Record<Role, readonly Permission[]>> = {
  viewer: ["read"],
  reception: ["read", "invite"],
  operator: ["read", "invite", "change"],
};

/** Whether a role may do this. What it may not do gets 403 READ_ONLY. */
export const roleAllows = (role: Role, permission: Permission): boolean => ROLE_PERMISSIONS[role].includes(permission);

/** What history says about a call, besides what it did. */
export interface AuditContext {
  actor: Actor;
  requestId?: string | null;
  /** Why, as the caller said it. */
  reason?: string | null;
}

export const BY_CLOCK: AuditContext = { actor: { kind: "service" } };
