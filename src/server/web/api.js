// Calls of the server that serves this page.

import {settings} from "./store.js";

function headers() {
  const list = {"Content-Type": "application/json"};
  if (settings.key) list.Authorization = `Bearer ${settings.key}`;
  return list;
}

async function refuse(response) {
  let message = `${response.status} ${response.statusText}`;
  try {
    message = (await response.json()).error.message;
  } catch {
    // the status says what there is to say
  }
  throw Object.assign(new Error(message), {status: response.status});
}

// The model that is served; waits while it is loading.
export async function model() {
  while (true) {
    const response = await fetch("v1/models", {headers: headers()});
    if (response.ok) return (await response.json()).data[0];
    if (response.status !== 503) await refuse(response);
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

// Streams an answer: yields the objects of the events. `mostGuesses`: of the server; 0: it can't guess.
export async function* chat(messages, signal, mostGuesses) {
  const body = {messages, stream: true, stream_options: {include_usage: true}};
  for (const name of ["temperature", "top_p", "min_p", "top_k", "max_tokens", "seed"]) {
    if (settings[name] !== null && settings[name] !== "") body[name] = settings[name];
  }
  if (mostGuesses > 0) {
    if (settings.speculate) body.speculate = settings.speculate;
    if (settings.draft_tokens) body.draft_tokens = Math.min(settings.draft_tokens, mostGuesses);
  }
  const response = await fetch("v1/chat/completions",
                               {method: "POST", headers: headers(), body: JSON.stringify(body), signal});
  if (!response.ok) await refuse(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let pending = "";
  while (true) {
    const {value, done} = await reader.read();
    if (done) return;
    const events = (pending + value).split("\n\n");
    pending = events.pop();
    for (const event of events) {
      if (!event.startsWith("data: ") || event === "data: [DONE]") continue;
      const data = JSON.parse(event.slice(6));
      if (data.error) throw new Error(data.error.message);
      yield data;
    }
  }
}
