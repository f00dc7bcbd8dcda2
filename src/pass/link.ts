/** An invitation as the link has it after `#`: `APPLICATION_ID/TOKEN`. */
export interface Invited {
  applicationId: string;
  token: string;
}

/** @param hash includes the `#`. @returns null if the link was cut off */
export function readLink(hash: string): Invited | null {
  const [, applicationId, token] = /^#(\w{1,64})\/([\w-]{1,200})$/.exec(hash) ?? [];
  return applicationId === undefined || token === undefined ? null : { applicationId, token };
}
