/** Migrations of the allocator's tables, which wrangler bundles as text. */
declare module "*.sql" {
  const text: string;
  export default text;
}
