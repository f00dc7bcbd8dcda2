/**
 * Whether creating an application's invitations needs the secret (contract section 5). With an issuer of user tokens it always does:
 * an invitation of a stranger would reserve numbers that no login of a stranger gets.
 */
export const requiresSecret = (row: { requireSecret: boolean; userIssuer: string | null }): boolean =>
  row.requireSecret || row.userIssuer !== null;
