/**
 * What a QR code of an application's invitations opens: `{token}` stands where the token goes. Unless an administrator has set
 * another link, it is that of the service's own page for visitors (contract section 27). The token follows `#`, which browsers
 * do not send, so it reaches no server and no log.
 *
 * @param own that of the application; null: none is set
 * @param publicUrl `PUBLIC_URL` without a slash at its end; null: it is not set
 * @returns null: a code has the token alone
 */
export function invitationLinkOf(
  { applicationId, own }: { applicationId: string; own: string | null },
  { publicUrl, hasPass }: { publicUrl: string | null; hasPass: boolean },
): string | null {
  if (own !== null) return own;
  return publicUrl === null || !hasPass ? null : `${publicUrl}/pass#${applicationId}/{token}`;
}
