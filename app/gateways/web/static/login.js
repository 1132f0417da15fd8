"use strict";
const said = document.getElementById("said");

async function login(token) {
  const answer = await fetch("/login", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ token }),
  });
  if (answer.ok) location.replace("/");
  else said.textContent = (await answer.json()).message;
}

function ask(token) {
  said.textContent = "…";
  login(token).catch(() => { said.textContent = "The server does not answer."; });
}

document.getElementById("login").addEventListener("submit", (event) => {
  event.preventDefault();
  ask(document.getElementById("token").value.trim());
});

// A link brings its token behind the #, which no server and no log sees.
const link = location.hash.slice(1);
history.replaceState(null, "", "/login");
if (link) ask(link);
// From another site's link the browser sends no cookie; from here it does.
else fetch("/state").then((answer) => { if (answer.ok) location.replace("/"); }).catch(() => {});
