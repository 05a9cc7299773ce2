E = {}
E['Calls/APIError+Rooms.swift'] = [
('"User \\(user) was thrown out of room \\(room) and may come back in \\(seconds) s."', '"User \\(user) was kicked from room \\(room) and may come back in \\(seconds) s."'),
('"Room \\(id) has changed, or was never of this version."', '"If-Match does not name the present version of room \\(id)."'),
('"Room \\(id) is there, of a version that the change is not meant for."', '"Room \\(id) exists, with a version that If-None-Match excludes."'),
('expected: "a room of another version than \\"\\(version)\\""', 'expected: "a version other than \\"\\(version)\\""'),
('"There is a room \\(id) already, \\(state.rawValue)\\(when)."', '"Room \\(id) exists already and is \\(state.rawValue)\\(when)."'),
('"Device \\(device) has an open room already: \\(room)."', '"Device \\(device) already has an open room: \\(room)."'),
('"expected a key of its own for each request"', '"expected a new key for each request"'),
('"A request with this Idempotency-Key is being carried out; its answer can be had soon."', '"A request with this Idempotency-Key is still running; repeat it later to get its answer."'),
('"The request with this Idempotency-Key was carried out by an earlier version of the server, which did not keep the answer."', '"An earlier version of the server carried out the request with this Idempotency-Key and did not store its answer."'),
('"The server\'s disk has \\(free) bytes left, of which \\(least) are to stay free (data.minFree); nothing was made."', '"The server\'s disk has \\(free) bytes left, but at least \\(least) must stay free (data.minFree); nothing was created."'),
('"The room registry cannot be written or read now; nothing was changed."', '"The server cannot read or write its store now; nothing was changed."'),
('self = .unavailable("The server\'s data directory was deleted or replaced while it runs; nothing was changed.")',
 'self = .unavailable("The server\'s data directory was deleted or replaced while the server was running; nothing was changed.")'),
('"The room registry has too much to do now; nothing was changed."', '"Too many calls are waiting for the server\'s store; nothing was changed."'),
('help: "What was wrong, for people."', 'help: "The error in words, for people."'),
('help: "As in the X-Request-Id header."', 'help: "The request\'s id, as in X-Request-Id."'),
('''                        name: "type", schema: .words(Kind.allCases.map(\\.rawValue)), help: "What was wrong, for programs.", isRequired: true
                    ),''','''                        name: "type", schema: .words(Kind.allCases.map(\\.rawValue)), help: "The class of the error, for programs.",
                        isRequired: true),'''),
('help: "The field, parameter or header."', 'help: "The field, parameter or header at fault."'),
('help: "What it was, shortened."', 'help: "Its value, shortened."'),
('help: "What is expected."', 'help: "The rule that was broken."'),
('help: "The state that does not fit."', 'help: "The state that does not allow the call."'),
('help: "The states in which the call would have been possible, or the methods that the path has."', 'help: "The states that allow the call, or the methods that the path supports."'),
]
E['Calls/APIRoute.swift'] = [
('"No token, or not a valid one."', '"The token is missing, unknown or revoked."'),
('"What the path names does not exist."', '"The call names something that does not exist."'),
('"The body came too slowly (the server\'s setting limits.httpBody)."', '"The body arrived too slowly (the server\'s setting limits.httpBody)."'),
('''            "The state does not allow it (the error says which states do), something is taken, or the key's request is not done."''',
 '''            """
            The state does not allow the call (the error lists the states that do), something is taken or at its limit, or the first \\
            request with this Idempotency-Key is still running.
            """'''),
('"The room is not of a version that If-Match names, or is of one that If-None-Match names: look it up again."',
 '"If-Match does not list the room\'s version, or If-None-Match does: look the room up again."'),
('"The body has more than 64 KiB."', '"The body is larger than 64 KiB."'),
('"The body is not JSON by its Content-Type."', '"The Content-Type is not application/json."'),
('"The Range begins behind the file\'s end."', '"The Range begins after the end of the file."'),
('"Too many calls with this token, or too many failed ones from this address."', '"Too many calls with this token, or too many calls without a valid token from this address."'),
('"The room registry cannot be reached now; nothing was changed."', '"The server cannot carry out the call now; nothing was changed. Repeat it after Retry-After."'),
('"The server\'s disk has less room than its setting data.minFree; nothing was made."', '"The server\'s disk has less free space than the setting data.minFree; nothing was created."'),
('help: "0: all went well."', 'help: "0 for success."'),
('help: "As in the X-Request-Id header."', 'help: "The request\'s id, as in X-Request-Id."'),
]
E['Calls/BodyReader.swift'] = [
('"The body has more than \\(Self.largest) bytes."', '"The body is larger than \\(Self.largest) bytes."'),
]
E['Calls/RequestReader.swift'] = []
E['OpenAPI/OpenAPIDocument.swift'] = [
('"An API token; see the operation\'s x-role."', '"An API token; x-role is the lowest role that may call."'),
('''        Every call but this document needs a token of the role named by its `x-role` (admin may do everything, ops what app may, and more). \\
        Times are RFC 3339 in UTC; durations are seconds; lengths of text are in Unicode code points. Unknown fields and parameters are \\
        errors. Each answer has an `X-Request-Id`; `RateLimit-Limit`, `-Remaining` and `-Reset` tell how many calls the token has at once, \\
        how many of them are left, and in how many seconds all of them are there again (`RateLimit-Policy`: so many in so many seconds). \\
        With none left a call gets 429, whose `Retry-After` is the same as `-Reset`. A method that a path does not have gets 405 with \\
        `Allow` and the error type `method_not_allowed`.

        A room's answers have an `ETag`. `If-Match` with it, or with the room's `version` in quotes, makes a change only when the room has \\
        not changed since: otherwise 412. Likes, heartbeats and viewers are no changes in this sense. `If-None-Match` on a GET gets 304 while \\
        all of the answer is the same. Answers of 1 KiB or more are compressed for clients that send `Accept-Encoding: gzip`. Pages of the \\
        origins in the setting `api.allowOrigins` may call from browsers.

        A POST with an `Idempotency-Key` is carried out once: a repetition within a day, with the same token, path, query and body, gets \\
        the first answer with `Idempotency-Replayed: true`, also after a crash of the server: the answer is stored in one transaction with \\
        what the call changes. While the first is being carried out, a repetition gets 409 with `Retry-After` and the rule `in_progress`. \\
        Only what succeeded is kept; a call that was refused changed nothing, and its repetition is judged anew. Calls that change nothing \\
        are simply carried out again. Calls with `x-effect: live` act on connections and the floor, which end with the server's process: \\
        their answers are stored after the effect, and a repetition that finds none is carried out again.
''','''        Every call except for this document needs a token with the role in its `x-role`, or a higher one: `ops` may do all that `app` may, \\
        and more; `admin` may do everything. Times are RFC 3339 in UTC; durations are seconds; lengths of text are in Unicode code points. \\
        Unknown fields and parameters are errors. A method that the path does not support gets 405 with `Allow` and the error type \\
        `method_not_allowed`. Each answer has an `X-Request-Id`. Answers of 1 KiB or more are compressed for clients that send \\
        `Accept-Encoding: gzip`. Browsers may call from pages of the origins in the setting `api.allowOrigins`.

        `RateLimit-Limit` is the number of calls that the token may make at once, `RateLimit-Remaining` how many of them are left, and \\
        `RateLimit-Reset` the number of seconds until all of them are available again. `RateLimit-Policy` gives the limit and its window \\
        in seconds. A call beyond the limit gets 429 with a `Retry-After` equal to `RateLimit-Reset`.

        Answers with a room have an `ETag`. A change with `If-Match`, which holds that tag or the room's `version` in quotes, is carried \\
        out only if the room has not changed since; otherwise it gets 412. Likes, heartbeats and viewers do not count as changes. A GET \\
        with `If-None-Match` gets 304 while the whole answer is the same.

        A POST with an `Idempotency-Key` is carried out once. A repetition within a day, with the same token, path, query and body, gets \\
        the first answer and `Idempotency-Replayed: true`, even after a crash of the server: the answer is stored in one transaction with \\
        the change. While the first request is running, a repetition gets 409 with `Retry-After` and the rule `in_progress`. Only \\
        successful answers are stored: a refused call changed nothing, and its repetition is carried out as a new call. Calls that change \\
        nothing are carried out each time. Calls with `x-effect: live` act on connections and the floor, which end with the server's \\
        process: their answers are stored after the effect, and a repetition that finds no answer is carried out again.
'''),
('"Only of this version."', '"Carries out the call only if the room has one of these versions."'),
('''        if route.isVersioned, route.method == .get { parameters.append(Self.tags("If-None-Match", "Only if it is not this any more.")) }
        if route.isConditional { parameters.append(Self.tags("If-None-Match", "Only if it is of none of these versions.")) }
''','''        if route.isVersioned, route.method == .get {
            parameters.append(Self.tags("If-None-Match", "Answers 304 if the answer's ETag is one of these."))
        }
        if route.isConditional {
            parameters.append(Self.tags("If-None-Match", "Carries out the call only if the room has none of these versions."))
        }
'''),
('''            parameters += [Self.header("Range", "Which bytes."), Self.header("If-Range", "Only of the file with this ETag.")]
''','''            parameters += [
                Self.header("Range", "The bytes to return."),
                Self.header("If-Range", "Applies Range only if the file has this ETag; otherwise the whole file is returned."),
            ]
'''),
('''        "name": "Idempotency-Key", "in": "header", "required": false, "description": "Makes a repetition harmless.",
''','''        "name": "Idempotency-Key", "in": "header", "required": false,
        "description": "Makes the request safe to repeat: a repetition with the same key gets the first answer.",
'''),
('["description": "It is still what If-None-Match names.", "headers": ["ETag": Self.eTag]]', '["description": "The answer is still one that If-None-Match lists.", "headers": ["ETag": Self.eTag]]'),
('"The path of what was made."', '"The path of the created object."'),
('"description": "For If-Match and If-None-Match."', '"description": "The entity tag, for If-Match and If-None-Match."'),
]
E['APIService.swift'] = [
('"The server failed; its log says more."', '"The server failed to carry out the call; its log has the details."'),
('"This call needs a token of role \\(role.rawValue); this one has \\(token.role.rawValue)."', '"This call needs a token with role \\(role.rawValue); this token has role \\(token.role.rawValue)."'),
('"No \\(request.method) \\(request.uri.path.prefix(200)) here; the path has \\(allowed.joined(separator: ", "))."', '"\\(request.uri.path.prefix(200)) does not support \\(request.method); it supports \\(allowed.joined(separator: ", "))."'),
('"this call goes by no version; expected no \\(header)"', '"this call does not support conditions; expected no \\(header)"'),
('"The room has changed, or was never of this version."', '"If-Match does not name the room\'s present version."'),
('"This request came by a proxy that the server\'s setting access.trustedProxies does not name; the API does not answer it."', '"This request came through a proxy that the server\'s setting access.trustedProxies does not list; the API refuses it."'),
('"The API does not answer this address; the server\'s setting access.apiFrom says which ones it does."', '"This address may not call the API; the server\'s setting access.apiFrom lists the addresses that may."'),
('"More than \\(self.limits.rate) calls a second with this token; the server\'s setting api.rateLimit says how many."', '"More than \\(self.limits.rate) calls a second with this token; the server\'s setting api.rateLimit is the limit."'),
('"No \\(request.method) \\(request.uri.path.prefix(200)) here."', '"There is no \\(request.method) \\(request.uri.path.prefix(200))."'),
]
E['Callbacks/CallbackRoutes.swift'] = [
('''        "targetId", .sought(length: 1...64), "Only notices to this target of the settings, as /callbacks/targets names it.")''','''        "targetId", .sought(length: 1...64), "Only notices to this webhook target; /callbacks/targets lists the ids.")'''),
('"Notices with smaller ids only."', '"Only notices with smaller ids."'),
('"How many at most."', '"The maximum number of notices."'),
('"The delivery log, newest first."', '"List the delivery log of webhooks, newest first."'),
('''            .get, "/callbacks/targets", "listCallbackTargets", .callbacks, .ops, "The targets that the settings name, and how each does.",
            answers:''','''            .get, "/callbacks/targets", "listCallbackTargets", .callbacks, .ops,
            "List the webhook targets in the settings, and whether each is failing.", answers:'''),
('''            storing: "/callbacks/{callbackId}/redeliver", "redeliverCallback", .callbacks, .ops, "Send a notice again, with the same key.",
            in: [Self.id.erased], answers:''','''            storing: "/callbacks/{callbackId}/redeliver", "redeliverCallback", .callbacks, .ops,
            "Send a notice again: queues a copy with an id of its own and the same idempotency key.", in: [Self.id.erased],
            answers:'''),
('"the settings name none"', '"the settings have none"'),
('"is no target; \\(known)"', '"is not a webhook target; \\(known)"'),
('"Its id: log and callbacks name it so."', '"The target\'s id, as in the log and in callbacks."'),
('.field("url", .text, "Scheme, host and port.")', '.field("url", .text, "The target\'s scheme, host and port.")'),
('"The shape of the bodies."', '"The format of the bodies."'),
('"Its last attempt failed."', '"Whether the last attempt failed."'),
('"The first of the attempts that failed."', '"When the first of the consecutive failures happened."'),
('"Failed since then, one after the other."', '"Consecutive failed attempts since then."'),
('"Why the last one failed."', '"Why the last attempt failed."'),
('"As the settings have them."', '"The targets, as in the settings."'),
('"For `before`; null at the end."', '"Pass it as `before` to get the next page; null at the end."'),
('"The notice\'s number; its idempotency key names it too."', '"The notice\'s number."'),
('"Where it goes: the target\'s id."', '"The id of the target."'),
('"The shape of its body."', '"The format of the body."'),
('"Failed: given up after the last try."', '"failed: given up after the last attempt."'),
('"What it tells."', '"The event that it reports."'),
('"Tries so far."', '"Attempts so far."'),
('"When the next try is due, while it is pending."', '"When the next attempt is due; null unless the notice is pending."'),
('"HTTP status of the last try; null without an answer."', '"HTTP status of the last attempt; null if there was no answer."'),
('"Why the last try failed."', '"Why the last attempt failed."'),
('"When the last try began."', '"When the last attempt began."'),
('"How long the last try took."', '"How long the last attempt took, in seconds."'),
('"When it was accepted."', '"When the target accepted the notice."'),
]
E['Events/EventRoutes.swift'] = [
('"Events with larger ids only."', '"Only events with larger ids."'),
('"How many at most."', '"The maximum number of events."'),
('"The only room whose events it is good for; without: all."', '"The room whose events the ticket covers; all rooms if omitted."'),
('"Events of all rooms, oldest first; the WebSocket /events tells them as they happen."', '"List the events of all rooms, oldest first. The WebSocket /events sends them as they happen."'),

('"Make a ticket that opens the WebSocket /events once, within a minute: for clients that cannot send a token."', '"Make a ticket that opens the WebSocket /events once, within a minute, for clients that cannot send a token."'),
('"A ticket is made for a token."', '"A ticket needs a token."'),
('"For the next call\'s `after`."', '"Pass it as `after` in the next call."'),
('"There is no later event yet."', '"Whether there is no later event yet."'),
('"Grows over all rooms and is never used twice."', '"Increases across all rooms and is never reused."'),
('"Grows by one per event of the room."', '"Increases by one with each event of the room."'),
('"What happened."', '"The kind of event."'),
('"The room\'s life."', '"Which life of the room id."'),
('"When."', '"When it happened."'),
('"What there is to know."', '"Details, which depend on `kind`."'),
('"For /events?ticket=…. Good for one connection."', '"For /events?ticket=…. Valid for one connection."'),
('"Until when."', '"When the ticket expires."'),
]
E['Events/EventsEndpoint.swift'] = [
('"The event feed has its \\(EventHub.subscriberLimit) subscribers already."', '"The event feed already has \\(EventHub.subscriberLimit) subscribers, its limit."'),
('"This ticket is not known, was used, or is older than a minute."', '"This ticket is unknown, already used, or older than a minute."'),
('"is there under its former name too"', '"is given twice: roomId is the same as room"'),
]
E['Forms/InputType.swift'] = [
('"\\(text) is there twice"', '"\\(text) is given twice"'),
]
E['Gate/Authentication.swift'] = [
('"This token is not known, or it was revoked."', '"This token is unknown or revoked."'),
]
E['Gate/Conditions.swift'] = [
('"expected * or entity tags in quotes, as ETag has them"', '"expected * or entity tags in quotes, as in ETag"'),
]
E['Gate/CrossOrigin.swift'] = [
('"Pages of this origin may not call the API; the server\'s setting api.allowOrigins names those that may."', '"Pages of this origin may not call the API; the server\'s setting api.allowOrigins lists the origins that may."'),
]
E['Gate/Idempotency.swift'] = [
('"An answer was not kept for its Idempotency-Key"', '"An answer was not stored for its Idempotency-Key"'),
]
