/// The tables of stats.db.
enum StatisticsSchema {
    /// Marks the file as ours: "ESst".
    static let applicationID = 0x4553_7374
    static let version = 1

    /// The reason why a database is not used.
    enum Refusal: Error, CustomStringConvertible {
        case foreign
        case newer(Int)

        var description: String {
            switch self {
            case .foreign: "is another program's database; move it away"
            case .newer(let version): "was written by a newer version of earshot (schema \(version)); move it away, or run that version"
            }
        }
    }

    /// Makes the tables in an empty database; throws ``Refusal`` for one that is not ours.
    static func prepare(_ db: StatisticsConnection) throws {
        let id = Int(try db.number("PRAGMA application_id") ?? 0)
        let version = Int(try db.number("PRAGMA user_version") ?? 0)
        if id == Self.applicationID {
            guard version <= Self.version else { throw Refusal.newer(version) }
            return
        }
        guard id == 0, version == 0, try db.number("SELECT count(*) FROM sqlite_master") == 0 else { throw Refusal.foreign }
        try db.runScript(
            """
            \(Self.figures("minutes"))
            \(Self.figures("tens"))
            CREATE TABLE plays (
                id INTEGER PRIMARY KEY AUTOINCREMENT, stream TEXT NOT NULL, room TEXT, session INTEGER NOT NULL, "user" TEXT,
                address TEXT NOT NULL, transport TEXT NOT NULL, client TEXT, began INTEGER NOT NULL, ended INTEGER NOT NULL,
                bytes INTEGER NOT NULL, reason TEXT NOT NULL, skipped INTEGER NOT NULL, behind_ms INTEGER NOT NULL
            ) STRICT;
            CREATE INDEX plays_stream ON plays(stream, id);
            CREATE TABLE pushes (
                id INTEGER PRIMARY KEY AUTOINCREMENT, stream TEXT NOT NULL, room TEXT, session INTEGER NOT NULL, "user" TEXT,
                address TEXT NOT NULL, source TEXT NOT NULL, client TEXT, began INTEGER NOT NULL, ended INTEGER NOT NULL,
                bytes INTEGER NOT NULL, reason TEXT NOT NULL, video TEXT, audio TEXT, width INTEGER, height INTEGER
            ) STRICT;
            CREATE INDEX pushes_stream ON pushes(stream, id);
            PRAGMA application_id = \(Self.applicationID);
            PRAGMA user_version = \(Self.version);
            """)
    }

    /// A table of figures: by subject for series, and by time for lists and deletion. The last four are sums over `live_seconds` about the arrival of media.
    private static func figures(_ name: String) -> String {
        """
        CREATE TABLE \(name) (
            subject TEXT NOT NULL, at INTEGER NOT NULL, bytes_in INTEGER NOT NULL, bytes_out INTEGER NOT NULL, plays INTEGER NOT NULL,
            viewer_ms INTEGER NOT NULL, peak INTEGER NOT NULL, live_seconds INTEGER NOT NULL DEFAULT 0, fps REAL NOT NULL DEFAULT 0,
            jitter_ms REAL NOT NULL DEFAULT 0, keyframe_ms INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (subject, at)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX \(name)_at ON \(name)(at);
        """
    }

    /// How columns of several rows are combined, in the order that ``addition(to:values:)`` expects.
    static let sums = """
        sum(bytes_in) AS bytes_in, sum(bytes_out) AS bytes_out, sum(plays) AS plays, sum(viewer_ms) AS viewer_ms, max(peak) AS peak,
        sum(live_seconds) AS live_seconds, sum(fps) AS fps, sum(jitter_ms) AS jitter_ms, max(keyframe_ms) AS keyframe_ms
        """

    /// Adds a row's figures to existing ones.
    static func addition(to table: String, values: String) -> String {
        """
        INSERT INTO \(table) (subject, at, bytes_in, bytes_out, plays, viewer_ms, peak, live_seconds, fps, jitter_ms, keyframe_ms) \(values)
        ON CONFLICT (subject, at) DO UPDATE SET bytes_in = bytes_in + excluded.bytes_in, bytes_out = bytes_out + excluded.bytes_out,
            plays = plays + excluded.plays, viewer_ms = viewer_ms + excluded.viewer_ms, peak = max(peak, excluded.peak),
            live_seconds = live_seconds + excluded.live_seconds, fps = fps + excluded.fps, jitter_ms = jitter_ms + excluded.jitter_ms,
            keyframe_ms = max(keyframe_ms, excluded.keyframe_ms)
        """
    }
}
