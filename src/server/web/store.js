// What the browser keeps: conversations and settings.

const kConversations = "edgerunner.conversations";
const kSettings = "edgerunner.settings";

function read(key, fallback) {
  try {
    return JSON.parse(localStorage.getItem(key)) ?? fallback;
  } catch {
    return fallback;
  }
}

export const settings = {
  system: "", temperature: 0.7, top_p: 0.95, min_p: 0.05, top_k: 0, max_tokens: null, seed: null,
  speculate: "", draft_tokens: null, key: "", ...read(kSettings, {}),
};
export const saveSettings = () => localStorage.setItem(kSettings, JSON.stringify(settings));

// [{id, title, messages: [{role, content, reasoning, note}]}], the newest first
export const conversations = read(kConversations, []);

export function saveConversations() {
  const kept = conversations.filter((conversation) => conversation.messages.length);
  while (true) {
    try {
      localStorage.setItem(kConversations, JSON.stringify(kept));
      return;
    } catch {
      if (kept.length < 2) return;  // the browser keeps no more
      kept.pop();  // the oldest makes room
    }
  }
}
