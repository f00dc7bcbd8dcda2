/**
 * The link in an application's QR codes of invitations, with `{token}` for the token. By default it leads to the
 * service's own page for visitors (contract section 27). The token is in the fragment, which browsers do not send, so
 * it reaches no server and no log.
 *
 * @param own the application's link; null if none is set
 * @param publicUrl `PUBLIC_URL` without a slash at its end; null if it is not set
 * @returns null if codes contain only the token
 */
export function invitationLinkOf(
  { applicationId, own }: { applicationId: string; own: string | null },
  { publicUrl, hasPass }: { publicUrl: string | null; hasPass: boolean },
): string | null {
  if (own !== null) return own;
  return publicUrl === null || !hasPass ? null : `${publicUrl}/pass#${applicationId}/{token}`;
}
