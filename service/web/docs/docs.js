"use strict";

// The document is next to the page, wherever a proxy puts both.
window.SwaggerUIBundle({
  url: new URL("openapi.json", document.baseURI).href,
  dom_id: "#docs",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  tryItOutEnabled: true,
  syntaxHighlight: { theme: "idea" },
  validatorUrl: null, // by default the document would be sent to a service elsewhere
});
