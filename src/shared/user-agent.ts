/** `User-Agent` of every webhook, by which receivers and their firewalls recognize the sender. */
export const USER_AGENT = "badge-distribution-service/1.0";
