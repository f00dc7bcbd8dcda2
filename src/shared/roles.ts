/** The roles that a console secret can have. */
export const ROLES = ["viewer", "reception", "operator"] as const;
export type Role = (typeof ROLES)[number];

/** The permission that a call needs: to read, to create or revoke invitations, or to change other things. */
export type Permission = "read" | "invite" | "change";

const ROLE_PERMISSIONS: Readonly<Record<Role, readonly Permission[]>> = {
  viewer: ["read"],
  reception: ["read", "invite"],
  operator: ["read", "invite", "change"],
};

/** Whether a role has a permission. A call without it gets 403 READ_ONLY. */
export const roleAllows = (role: Role, permission: Permission): boolean => ROLE_PERMISSIONS[role].includes(permission);
