package import Support

/// Makes the document's examples: a typical value of a schema.
package enum SchemaExample {
    /// Values for members with these names whose schema says only that they are text, URLs or numbers.
    private static let typical: [String: JSONValue] = [
        "roomId": "demo", "app": "live", "name": "demo", "title": "Morning walk", "userId": "ann", "user": "ann", "owner": "ann",
        "nick": "Ann", "deviceUid": "earphone-7", "to": "bob", "from": "203.0.113.9", "address": "203.0.113.9:51234",
        "remote": "203.0.113.9:51234", "clientAddress": "203.0.113.9:51234", "reason": "maintenance", "forbidReason": "maintenance",
        "requestId": "5f0c6a1e9b7d4c23", "taskId": "5f0c6a1e9b7d4c23", "recordingId": "8d21f7b04c9e6a35", "snapshotId": "8d21f7b04c9e6a35",
        "idempotencyKey": "e42-1795255200123", "version": "3.12",
        "rtmp": "rtmp://live.example.com/live/demo", "rtmps": "rtmps://live.example.com/live/demo",
        "target": "rtmp://origin.example.com/live/demo",
        "url": "rtmp://origin.example.com/live/demo", "hls": "https://live.example.com/live/demo.m3u8",
        "hlsTs": "https://live.example.com/live/demo.ts.m3u8",
        "flv": "https://live.example.com/live/demo.flv", "mp4": "https://live.example.com/live/demo.mp4",
        "whep": "https://live.example.com/whep/live/demo",
        "whip": "https://live.example.com/whip/live/demo",
        "snapshotUrl": "https://live.example.com/api/v1/rooms/demo/snapshot.jpg", "secret": "a secret, shown once",
        "videoCodec": "avc1.64001f", "audioCodec": "mp4a.40.2", "file": "live/demo/1.mp4", "seconds": 60, "slot": 1, "isPublic": true,
        "isActive": true, "neverStarted": 300, "grace": 30, "width": 1_280, "height": 720, "bytes": 1_048_576,
        "durationMs": 60_000, "heldMs": 4_200, "holdMs": 60_000, "byMs": 3_600_000, "startedMs": 1_795_255_200_000,
        "endedMs": 1_795_255_260_000, "takenMs": 1_795_255_200_000,
    ]
    private static let instant: JSONValue = "2026-11-21T10:00:00.000Z"
    /// Instants that come after another in the same object.
    private static let laterInstants: [String: JSONValue] = ["endedAt": "2026-11-21T10:01:00.000Z"]

    /// An answer gets all members; a request gets the required ones and the first `optional` others.
    package static func value(_ schema: Schema, _ name: String = "", optional: Int = .max) -> JSONValue {
        switch schema {
        case .plain(let members): Self.value(.object(members), name)
        case .list(let element): [Self.value(element, name, optional: optional)]
        case .map: .object([])
        case .nullable(let inner), .named(_, let inner): Self.value(inner, name, optional: optional)
        case .variants(_, let variants): variants.first.map { Self.value($0.schema, name, optional: optional) } ?? .null
        case .object(let properties):
            .object(
                Self.shown(properties, optional).map {
                    .init(name: $0.name, value: Self.value($0.schema, $0.name, optional: optional))
                })
        }
    }

    private static func shown(_ properties: [Schema.Property], _ optional: Int) -> [Schema.Property] {
        var left = optional
        return properties.filter { property in
            if property.isRequired { return true }
            guard left > 0 else { return false }
            left -= 1
            return true
        }
    }

    private static func value(_ keywords: JSONValue, _ name: String) -> JSONValue {
        if let value = keywords["const"] { return value }
        for word in ["examples", "enum"] { if case .array(let values)? = keywords[word], let first = values.first { return first } }
        let typical = Self.typical[name]
        switch keywords["type"] {
        case "null"?: return .null
        case "boolean"?: return typical == true ? true : false
        case "integer"?, "number"?:
            if case .integer? = typical { return typical ?? 1 }
            let least: Int64 = if case .integer(let value)? = keywords["minimum"] { value } else { 0 }
            return .integer(max(least, 1))
        case "object"?: return .object([])
        case "array"?: return []
        case "string"?:
            if keywords["format"] == "date-time" { return Self.laterInstants[name] ?? Self.instant }
            if case .string(let text)? = typical, keywords["format"] != "uri" || text.contains("://") { return .string(text) }
            return keywords["format"] == "uri" ? "https://live.example.com/" : "text"
        default: return .object([])
        }
    }
}
