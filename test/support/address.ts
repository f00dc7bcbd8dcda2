let made = 0;

/** A client address that no other call has: refused calls are limited by address, and tests make many. */
export function newAddress(): string {
  made++;
  return `10.${(made >> 16) & 255}.${(made >> 8) & 255}.${made & 255}`;
}

/** The request as Cloudflare hands it over: with the address of a client, a new one unless it has one. */
export function fromSomewhere(request: Request): Request {
  if (request.headers.has("cf-connecting-ip")) return request;
  const arrived = new Request(request);
  arrived.headers.set("cf-connecting-ip", newAddress());
  return arrived;
}
