/**
 * Whether creating an application's invitations needs the secret (contract section 5). With an issuer of user tokens it
 * always does. Otherwise a stranger's invitations could reserve numbers that a stranger's login cannot get.
 */
export const requiresSecret = (row: { requireSecret: boolean; userIssuer: string | null }): boolean =>
  row.requireSecret || row.userIssuer !== null;
