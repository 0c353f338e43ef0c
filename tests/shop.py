"""Small site of a user's own: Flask, SQLite, a form with a token, and an article that may cost more CPU time.

`python shop.py DATABASE EXTRA_MS PORT [CERTIFICATE KEY]`
"""

from __future__ import annotations

import logging
import secrets
import sqlite3
import sys
import time

from flask import Flask, g, redirect, request, session
from werkzeug.serving import WSGIRequestHandler
from werkzeug.wrappers import Response

DATABASE, EXTRA_MS, PORT = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
app = Flask(__name__)
app.secret_key = secrets.token_hex()


def database() -> sqlite3.Connection:
    if "database" not in g:
        g.database = sqlite3.connect(DATABASE)
    found: sqlite3.Connection = g.database
    return found


@app.teardown_appcontext
def close(_: object) -> None:
    if "database" in g:
        g.database.close()


@app.get("/login")
def form() -> str:
    session["token"] = secrets.token_urlsafe(16)
    field = f'<input type="hidden" name="csrf_token" value="{session["token"]}">'
    return f'<h1>Sign in</h1><form method="post">{field}</form>'


@app.post("/login")
def sign_in() -> Response | tuple[str, int]:
    name, password = request.form["name"], request.form["password"]
    if request.form["csrf_token"] != session.get("token"):
        return "wrong token", 400
    row = database().execute("SELECT password FROM accounts WHERE name = ?", [name]).fetchone()
    if row is None or row[0] != password:
        # As careless as a site may be.
        return f"wrong password: {name}, {password}", 403
    session["user"] = name
    return redirect("/")


@app.get("/articles/<int:number>")
def article(number: int) -> str:
    until_ns = time.thread_time_ns() + EXTRA_MS * 1e6
    while time.thread_time_ns() < until_ns:
        pass
    (title,) = database().execute("SELECT title FROM articles WHERE id = ?", [number]).fetchone()
    return f"{title}, signed in as {session['user']}"


if __name__ == "__main__":
    logging.getLogger("werkzeug").disabled = True
    # Connections are kept, as behind any server that people use.
    WSGIRequestHandler.protocol_version = "HTTP/1.1"
    app.run("127.0.0.1", PORT, threaded=True)
