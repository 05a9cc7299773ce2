E['Recordings/RecordingAnswers.swift'] = [
('"Which of its streams."', '"The stream\'s slot in the room."'),
('"True after a start."', '"True after a start, false after a stop."'),
('"When it was started."', '"When the recording was started."'),
('"Its id."', '"The recording\'s id."'),
('"Counts the task\'s files, from 1."', '"The file\'s number in its task, from 1."'),
('"Which of its streams; 0 without a room."', '"The stream\'s slot in the room; 0 without a room."'),
('"How far its file has come."', '"The state of the file."'),
('"Why it ended; null while it is being written."', '"Why the file ended; null while it is being written."'),
('"When its first frame came."', '"When the first frame arrived."'),
('"When its last frame came."', '"When the last frame arrived."'),
('"Its length; 0 while it is being written."', '"The duration in seconds; 0 while the file is being written."'),
('"Of the file, now."', '"The file\'s present size in bytes."'),
('"As RFC 6381 names it."', '"The codec\'s RFC 6381 name."'),
('"Frames left out because the disk was too slow."', '"Frames dropped because the disk was too slow."'),
('''            .field("isSeekable", .flag, "Its index stands in front; before, it plays in fragments.", \\.recording.isSeekable),''',
'''            .field(
                "isSeekable", .flag, "Whether the index is at the front of the file; otherwise the file plays in fragments.",
                \\.recording.isSeekable),'''),
('"Where it lies, below the folder of the recordings."', '"The file\'s path in the folder of recordings."'),
('"Where it is downloaded, below the server\'s own address."', '"The download\'s path below the server\'s address."'),
('"For `after`; null at the end."', '"Pass it as `after` to get the next page; null at the end."'),
('"Of all recordings\' files."', '"The size of all recordings\' files in bytes."'),
('"The page."', '"The recordings of this page."'),
]
E['Recordings/RecordingRoutes.swift'] = [
('"Which of the room\'s streams."', '"The stream\'s slot in the room."'),
('"Only this room\'s."', '"Only recordings of this room."'),
('"Only streams of this app."', '"Only recordings of this app\'s streams."'),
('"Only streams of this name; needs app."', '"Only recordings of streams with this name; needs app."'),
('''    static let state = Input("state", .choice() as InputType<RecordingState>, "Only those in this state; without: all but deleted ones.")
''','''    static let state = Input(
        "state", .choice() as InputType<RecordingState>, "Only recordings in this state; if omitted, all except deleted ones.")
'''),
('"The `next` of the page before."', '"The `next` of the previous page."'),
('"How many at most."', '"The maximum number of entries."'),
('''            "Start or stop recording one of a room's streams. A restart of the server does not end it. Stopped, its last file is closed when this answers.",
''','''            """
            Start or stop recording one of a room's streams. The recording continues after a restart of the server. A stop answers once \\
            the last file is closed.
            """,
'''),
('"Recordings, the running ones included, newest first."', '"List recordings, including running ones, newest first."'),
('"/recordings/{recordingId}", "getRecording", .recordings, .ops, "A recording."', '"/recordings/{recordingId}", "getRecording", .recordings, .ops, "Look a recording up."'),
('''            .delete, "/recordings/{recordingId}", "deleteRecording", .recordings, .ops, "Delete a recording's file.",
            in:''','''            .delete, "/recordings/{recordingId}", "deleteRecording", .recordings, .ops,
            "Delete the file of a finished or failed recording. The recording can still be looked up, in state deleted.",
            in:'''),
('"A recording could not be deleted"', '"A recording could not be deleted"'),
('"The file cannot be deleted now; the log says why."', '"The file cannot be deleted now; the server\'s log has the reason."'),
('"A recording\'s file, whole or a range of it; of one that is being written, what there is by now."', '"Download a recording\'s file or a range of it. A file being written is returned up to its last complete fragment."'),
('"The server\'s is stopping."', '"The server\'s is stopping."'),
('"Recordings take all the room that the server\'s setting recording.quota gives them; delete some."', '"Recordings have used up the server\'s setting recording.quota; delete some."'),
('"The disk has no room for recordings (the server\'s setting recording.minFree)."', '"The disk has too little free space for recordings (the server\'s setting recording.minFree)."'),
]
E['Recordings/RecordingRoutes.swift'] = [e for e in E['Recordings/RecordingRoutes.swift'] if e[0] != e[1]]
E['RelayTasks/RelayTaskRoutes.swift'] = [
('''    private static let direction = Input(
        "direction", .choice() as InputType<RelayTask.Direction>, "push: the stream goes there; pull: it comes from there."
    )
    .required''','''    private static let direction = Input(
        "direction", .choice() as InputType<RelayTask.Direction>,
        "push: sends the stream to the other server; pull: fetches it from there."
    )
    .required'''),
('''    private static let app = Input("app", .streamApp, "The stream's app here.").required
    private static let name = Input("name", .streamName, "The stream's name here.").required
''','''    private static let app = Input("app", .streamApp, "The stream's app on this server.").required
    private static let name = Input("name", .streamName, "The stream's name on this server.").required
'''),
('''        "url", .text(length: 8...2_048), "The stream's address there, rtmp:// or rtmps://, with its credential. Not shown again."
''','''        "url", .text(length: 8...2_048),
        "The stream's address on the other server, rtmp:// or rtmps://, with its credential. Never shown again."
'''),
('private static let onDemand = Input("onDemand", .flag, "Of a pull: only while somebody plays.", fallback: false)', 'private static let onDemand = Input("onDemand", .flag, "For a pull: runs only while somebody plays the stream.", fallback: false)'),
('"Links to other servers, with their state."', '"List the links to other servers, with their state."'),
('"Forward a stream to another server, or pull one from there. Kept up across restarts until it is deleted."', '"Forward a stream to another server, or pull one from there. The link is kept up, across restarts too, until it is deleted."'),
('"is for the talk channels of rooms, into which nothing is pulled"', '"is reserved for talk channels; expected another app for a pull"'),
('"There is this task already."', '"This relay task exists already."'),
('"A task in the other direction has the same two ends: that would be a loop."', '"A task in the other direction has the same two ends; the two would form a loop."'),
('"\\(path) is pulled from another address already."', '"\\(path) is already pulled from another address."'),
('"The task\'s address cannot be stored; the log says why."', '"The task\'s address cannot be stored; the server\'s log has the reason."'),
('"/relay-tasks/{taskId}", "getRelayTask", .relays, .ops, "How a link stands."', '"/relay-tasks/{taskId}", "getRelayTask", .relays, .ops, "Look a link up."'),
('"End a link, for good."', '"End a link and delete it."'),
('"How many there are."', '"The number of tasks."'),
('"Its number."', '"The task\'s number."'),
('''            .field("direction", .choice(), "push: the stream goes there; pull: it comes from there.", \\.task.direction),
            .field("app", .text, "The stream's app here.", \\.task.path.app),
            .field("name", .text, "The stream's name here.", \\.task.path.name),
            .field("target", .text, "The other server, without the credential.", \\.target),
            .field("onDemand", .flag, "Of a pull: only while somebody plays.", \\.task.onDemand),
            .field("createdAt", .instant, "When it was made.", \\.task.createdAt),
''','''            .field(
                "direction", .choice(), "push: sends the stream to the other server; pull: fetches it from there.", \\.task.direction),
            .field("app", .text, "The stream's app on this server.", \\.task.path.app),
            .field("name", .text, "The stream's name on this server.", \\.task.path.name),
            .field("target", .text, "The address on the other server, without the credential.", \\.target),
            .field("onDemand", .flag, "For a pull: runs only while somebody plays the stream.", \\.task.onDemand),
            .field("createdAt", .instant, "When the task was created.", \\.task.createdAt),
'''),
('''                "waiting: for the next attempt. held: a pull waits until its stream is taken here again. idle and stopped: for a publisher or a viewer."
            )''','''                """
                waiting: the link waits for its next attempt. held: this server refuses the pulled stream; the pull is retried later. idle \\
                and stopped: the link waits for a publisher or a viewer.
                """
            )'''),
('"Of the state."', '"When the state began."'),
('"What ended the last connection, or speaks against publishing here."', '"Why the last connection ended, or why this server refuses the pulled stream."'),
('.field("attempts", .count, "To connect.")', '.field("attempts", .count, "Attempts to connect.")'),
('.field("bytesIn", .count, "Received.")', '.field("bytesIn", .count, "Bytes received.")'),
('.field("bytesOut", .count, "Sent.")', '.field("bytesOut", .count, "Bytes sent.")'),
('.field("framesIn", .count, "Received.")', '.field("framesIn", .count, "Frames received.")'),
('.field("framesOut", .count, "Sent.")', '.field("framesOut", .count, "Frames sent.")'),
('"Left out because the other server was slow."', '"Frames dropped because the other server was too slow."'),
]
E['Rooms/MemberRoutes.swift'] = [
('"A user enters; entering again renews the nick."', '"Add a user to a room. Joining again updates the nick."'),
('"A user leaves."', '"Remove a user from a room."'),
('"Who is there, by user id."', '"List members, by user id."'),
('"Throw a user out: the user\'s connections end, and it stays out for a while: joins, pushes, plays and talk are refused."',
 '"Kick a user: ends the user\'s connections, and refuses the user\'s joins, pushes, plays and talk for a while."'),
('.field("nick", .text, "For lists.", \\.nick)', '.field("nick", .text, "The nick, for lists.", \\.nick)'),
('"When the user entered."', '"When the user joined."'),
('"The last heartbeat or call."', '"When the user\'s last join or heartbeat arrived."'),
('"How many there are on all pages."', '"The number of members on all pages."'),
('"For `after`; null on the last page."', '"Pass it as `after` to get the next page; null on the last page."'),
('"The page."', '"The members of this page."'),
]
E['Rooms/PresentPicture.swift'] = [
('"\\(path) shows no picture now: it is not live, has no video, or has not sent a keyframe yet."', '"There is no picture of \\(path) now: it is not live, has no video, or has not sent a keyframe yet."'),
]
E['Rooms/RoomAnswer.swift'] = [
('''                "What the renewal gave. Where `expiresAt` is earlier, `expiresReason` says which deadline comes before it."
''','''                "Until when the renewal extends the room. If `expiresAt` is earlier, `expiresReason` names the deadline that comes first."
'''),
('"roomId", .text, "Its id."', '"roomId", .text, "The room\'s id."'),
('''            "Another one after each event of the room, and when its times move with the clock; If-Match takes it in quotes, and the whole ETag.",
''','''            """
            Changes with each event of the room, and when the room's times move with the clock. If-Match accepts it in quotes, or the \\
            whole ETag.
            """,
'''),
('"Counts the lives of this id, from 1."', '"Which life of this id it is, from 1."'),
('.field("title", .text, "For lists.", \\.room.title)', '.field("title", .text, "The title, for lists.", \\.room.title)'),
('"Whether lists for everybody may show it."', '"Whether public lists may show the room."'),
('"Made by a push to a name without a room."', '"Whether a push to a name without a room created it."'),
('"What the app keeps there."', '"The back end\'s own data."'),
('"Live only while media arrives."', '"The room\'s state; live only while media arrives."'),
('"Why it is in this state."', '"Why the room is in this state."'),
('"Its streams, by slot."', '"The room\'s streams, by slot."'),
('''        .field("policy", Self.policy, "How its time runs out, in seconds but for heartbeatMisses; and what is kept of it.", \\.room.policy),
''','''        .field(
            "policy", Self.policy, "The room's times in seconds, the number heartbeatMisses, and whether the room is recorded.",
            \\.room.policy),
'''),
('''        .field("playUrls", .nullable(PlayURLs.outputType), "Of slot 1, without a signature; the play-urls call signs.") {
''','''        .field("playUrls", .nullable(PlayURLs.outputType), "Play URLs of slot 1, unsigned; the play-urls call returns signed ones.") {
'''),
('"A picture of it, for whoever has a token; null while it is not live."', '"A picture of slot 1, for callers with a token; null unless it is live."'),
('"Why it is forbidden."', '"Why the room is forbidden."'),
('"Users who joined and did not leave."', '"Users who have joined and not left."'),
('"Since when it is live, or else in its state."', '"When the room went live, was interrupted or ended; otherwise when it began to wait for media."'),
('"Since when it is live, or was before the present interruption."', '"When the room went live; an interruption does not reset it."'),
('"When it expired or was closed."', '"When the room expired or was closed."'),
('"When time will next do something to it, if nothing happens before."', '"When the room\'s next deadline passes, if nothing happens before."'),
('''            "Which deadline that is: it ends the room, or its ban (resumeTime), or what is known of it (retention), or begins the owner's absence (ownerAway)."
''','''            """
            The deadline at `expiresAt`: resumeTime ends a ban, retention deletes the ended room, ownerAway marks the owner as away, and \\
            all others end the room.
            """
'''),
('"When it may be pushed to again."', '"When the room accepts pushes again."'),
('"Its number in the room."', '"The stream\'s number in the room."'),
('"Its media arrives."', '"Whether the stream\'s media arrives."'),
('"Nobody may push there now."', '"Whether the stream is forbidden."'),
('"The push that holds it."', '"The number of the push that holds the stream."'),
('"Without a signature; the play-urls call signs."', '"Unsigned play URLs; the play-urls call returns signed ones."'),
('"How many there are on all pages."', '"The number of rooms on all pages."'),
('"There are more than `total`: a search is not counted to its end."', '"Whether there may be more than `total`: searches count to a limit."'),
('"For `after`; null on the last page."', '"Pass it as `after` to get the next page; null on the last page."'),
('"The page."', '"The rooms of this page."'),
]
E['Rooms/RoomInputs.swift'] = [
('''    static let id = Input("roomId", .roomID, "Its id; a random one when none is given (a device's room keeps its own).")
''','''    static let id = Input("roomId", .roomID, "The room's id; if omitted, that of the device's last room, or else a random one.")
'''),
('"The app of its streams."', '"The app of the room\'s streams."'),
('''    static let slots = Input("slots", .whole(1...8), "How many streams it has: slot 1 is app/roomId, slot n app/roomId-n.", fallback: 1)
''','''    static let slots = Input("slots", .whole(1...8), "The number of streams: slot 1 is app/roomId, slot n is app/roomId-n.", fallback: 1)
'''),
('.text(length: 0...RoomLimits.titleLength), "For lists.")', '.text(length: 0...RoomLimits.titleLength), "The title, for lists.")'),
('"Whatever the app keeps there: a JSON object, at most 4096 bytes as compact JSON. Its numbers keep their digits, however many."',
 '"The back end\'s own data: a JSON object of at most 4096 bytes as compact JSON. Numbers keep all their digits."'),
('"Whether lists for everybody may show it."', '"Whether public lists may show the room."'),
('''    static let policy = Input("policy", .policy, "How its time runs out: what is not given is as the server's settings have it.")
''','''    static let policy = Input(
        "policy", .policy,
        "The room's times, and whether it is recorded. Omitted members come from the server's settings, or stay as they are in a change.")
'''),
('"The owner\'s user id; its presence counts for policy.ownerOffline."', '"The owner\'s user id. The owner\'s presence counts for policy.ownerOffline."'),
('"The device that pushes its slot 1, as app/deviceUid."', '"The device that pushes slot 1, as app/deviceUid."'),
('"The owner\'s user id; null: none."', '"The owner\'s user id; null removes the owner."'),
('"The device that pushes its slot 1; null: none."', '"The device that pushes slot 1; null removes the device."'),
('"Words of title, id or owner; the last may be the beginning of one."', '"Words of the title, id or owner; the last one may be a prefix."'),
('"true: only public rooms; false: only the others."', '"true: only public rooms; false: only rooms that are not public."'),
('"The order; a minus turns it round."', '"The order; a minus sign reverses it."'),
('"From 1, among the first 10000 rooms; `after` goes on without end."', '"The page, from 1, within the first 10000 rooms; use `after` to go further."'),
('"Rooms on a page."', '"Rooms per page."'),
('''RoomQuery.longestCursor), "The `next` of the page before.")''', '''RoomQuery.longestCursor), "The `next` of the previous page.")'''),
('"How many at most."', '"The maximum number of members."'),
('''    static let afterUser = Input("after", .id, "The `next` of the page before.")''', '''    static let afterUser = Input("after", .id, "The `next` of the previous page.")'''),
('"How much longer it may live; without: its countdown begins anew."', '"Seconds to add to the room\'s countdown; if omitted, the countdown starts again."'),
('"The user or device that it comes from."', '"The user or device that sends the heartbeat."'),
('"One of its streams; without: all of them."', '"The slot that pauses; all slots if omitted."'),
('"How many."', '"The number of likes to add."'),
('"For how long the user may not come back; without: 10. 0: it may at once."', '"Seconds for which the user may not come back: 10 if omitted, 0 for none."'),
('"For lists of members."', '"The nick, for lists of members."'),
('"expected an object with settings of the policy"', '"expected an object with policy settings"'),
('"is not a setting of the policy; ', '"is not a policy setting; '),
('"Until when; at most 90 days from now. Without it and seconds: for 7 days."', '"When the ban ends, at most 90 days from now; 7 days from now if seconds is omitted too."'),
('"For how long, instead of forbiddenUntil."', '"The length of the ban, instead of forbiddenUntil."'),
('"Why, for whoever is refused."', '"The reason, which refused clients get."'),
('"expected a time to come"', '"expected a time in the future"'),
]
E['Rooms/RoomRoutes.swift'] = [
('"Change a room; what is not given stays."', '"Change a room; omitted fields stay."'),
('"Close a room if it is open, and forget it."', '"Delete a room, closing it first if it is open."'),
('"End a room for good, an expired one too: its push is cut, its viewers\' streams end."', '"Close a room permanently, even an expired one: ends its pushes and its viewers\' streams."'),
('"End a room as if its time were over: the next valid push opens it again."', '"Expire a room as if its time were over. The next valid push reopens it."'),
('"Give a room more time; the answer says whether another deadline, as of heartbeats, still comes first."', '"Give a room more time. The answer says whether another deadline, such as missed heartbeats, still comes first."'),
('''        .room("heartbeat", "sendHeartbeat", .app, "Say that a room is still wanted, or its owner there.", body: [RoomInputs.sender.erased])
        {
            .heartbeat(sender: $0[RoomInputs.sender])
        },''','''        .room(
            "heartbeat", "sendHeartbeat", .app, "Report that a room is still wanted, or that its owner is present.",
            body: [RoomInputs.sender.erased]
        ) {
            .heartbeat(sender: $0[RoomInputs.sender])
        },'''),
('"Announce that media will stop for a while: the room waits longer."', '"Announce that media will pause; the room then waits longer."'),
('"Cut a room\'s push and let nobody push there until a time; an expired room, too."', '"Forbid a room, even an expired one: ends its pushes and refuses pushes and plays for a time."'),
('"Let a forbidden room be pushed to again."', '"Lift a room\'s ban, so that it accepts pushes and plays again."'),
('"Count likes."', '"Add likes to a room."'),
('"pages reach the first \\(RoomQuery.deepest) rooms; go on with after"', '"pages end at the first \\(RoomQuery.deepest) rooms; use after to go further"'),
]
E['Rooms/SnapshotRoutes.swift'] = [
('''    private static let slot = Input("slot", .whole(1...8), "Which of the room's streams.", fallback: 1)''', '''    private static let slot = Input("slot", .whole(1...8), "The stream's slot in the room.", fallback: 1)'''),
('"Only of this one of its streams."', '"Only pictures of the stream in this slot."'),
('"Pixels; the height follows. As wide as the stream without it."', '"Width in pixels; the height follows. If omitted, the stream\'s width."'),
('"The stream\'s last keyframe as a JPEG picture, at most some seconds old."', '"The last keyframe of a room\'s stream, as a JPEG picture. A picture is reused for 2 s."'),
('"the room has \\(room.slots.count) streams"', '"expected 1 to \\(room.slots.count), the room\'s streams"'),
('"The room shows no picture: it is \\(room.state.rawValue)."', '"There is no picture of a room that is \\(room.state.rawValue)."'),
('"Pictures that were taken of a room\'s streams by themselves (setting snapshots.interval), the newest first."', '"List the pictures that the server took of a room\'s streams at intervals (setting snapshots.interval), newest first."'),
('"A picture that was taken by itself."', '"Download a picture taken at an interval."'),
('"Its id."', '"The picture\'s id."'),
('.field("slot", .whole(1...8), "Which of the room\'s streams.", \\.slot)', '.field("slot", .whole(1...8), "The stream\'s slot in the room.", \\.slot)'),
('"When it was taken."', '"When the picture was taken."'),
('"Of the file."', '"The file\'s size in bytes."'),
('"Where it lies, below the folder of the pictures."', '"The file\'s path in the folder of pictures."'),
('"Where it is downloaded, below the server\'s own address."', '"The download\'s path below the server\'s address."'),
('"For `after`; null at the end."', '"Pass it as `after` to get the next page; null at the end."'),
('"The page."', '"The pictures of this page."'),
]
