// esbuild embeds these files as texts (build.sh).
declare module '*.proto' {
  const text: string;
  export default text;
}
declare module '*.jsonl' {
  const text: string;
  export default text;
}
