// Calls tools of an MCP server with the official TypeScript SDK.
//
// Standard input is {transport, calls}: transport is {command, args, env} or
// {url, headers}, calls is [{tool, arguments}]. Standard output is
// {server, tools, results}: what the server says it is, its tools, and the
// answer to each call, in order. Exit codes: 0, or 1 with the reason on standard
// error.
import { text } from 'node:stream/consumers';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const { transport, calls } = JSON.parse(await text(process.stdin));
const client = new Client({ name: 'axiom-interop', version: '1.0.0' });
await client.connect(
  transport.url
    ? new StreamableHTTPClientTransport(new URL(transport.url), { requestInit: { headers: transport.headers } })
    : new StdioClientTransport(transport),
);
const { tools } = await client.listTools();
const results = [];
for (const { tool, arguments: args } of calls) {
  results.push(await client.callTool({ name: tool, arguments: args }));
}
process.stdout.write(JSON.stringify({ server: client.getServerVersion(), tools, results }));
await client.close();
