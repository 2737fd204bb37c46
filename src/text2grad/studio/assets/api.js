// Requests to the studio's server.

export class ApiError extends Error {
  constructor(status, detail, body) {
    super(detail);
    this.status = status;
    this.body = body;
  }
}

export async function request(method, path, body, options = {}) {
  let response;
  try {
    response = await fetch(path, {
      method,
      headers: { "Content-Type": "application/json", "X-Text2grad-Studio": "1" },
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin",
      ...options,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "the studio does not answer; is it still running?", null);
  }
  const content = await response.json().catch(() => null);
  if (!response.ok) throw new ApiError(response.status, content?.detail ?? response.statusText, content);
  return content;
}

export const get = (path, options) => request("GET", path, undefined, options);
export const post = (path, body = {}, options) => request("POST", path, body, options);
export const put = (path, body, options) => request("PUT", path, body, options);

export const query = (values) => new URLSearchParams(values).toString();
