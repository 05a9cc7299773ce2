import Foundation
import Testing

@testable import Support

/// Points in time in RFC 3339 form.
@Suite struct InstantTests {
    @Test(arguments: [
        ("1970-01-01T00:00:00.000Z", Int64(0)), ("1970-01-01T00:00:00.001Z", 1), ("2000-02-29T12:00:00.000Z", 951_825_600_000),
        ("2026-11-21T10:00:00.000Z", 1_795_255_200_000), ("2100-03-01T00:00:00.000Z", 4_107_542_400_000),
        ("9999-12-31T23:59:59.999Z", Instant.latest),
    ])
    func isWrittenAndRead(_ text: String, _ ms: Int64) {
        #expect(Instant.text(ms) == text)
        #expect(Instant.ms(text) == ms)
    }

    /// The example of RFC 9110 §5.6.7, a leap day, and days before 1970.
    @Test(
        arguments: [
            (784_111_777_000, "Sun, 06 Nov 1994 08:49:37 GMT"), (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (951_825_600_999, "Tue, 29 Feb 2000 12:00:00 GMT"),
            (-1, "Wed, 31 Dec 1969 23:59:59 GMT"), (Instant.latest, "Fri, 31 Dec 9999 23:59:59 GMT"),
            (.max, "Fri, 31 Dec 9999 23:59:59 GMT"),
            (.min, "Sat, 01 Jan 0000 00:00:00 GMT"),
        ] as [(Int64, String)])
    func inHTTP(_ ms: Int64, _ text: String) { #expect(Instant.httpText(ms) == text) }

    @Test(arguments: [
        ("2026-11-21T18:00:00+08:00", Int64(1_795_255_200_000)), ("2026-11-21T04:30:00-05:30", 1_795_255_200_000),
        ("2026-11-21t10:00:00z", 1_795_255_200_000), ("2026-11-21T10:00:00.5Z", 1_795_255_200_500),
        ("2026-11-21T10:00:00.123456789Z", 1_795_255_200_123),
    ])
    func otherSpellingsAreRead(_ text: String, _ ms: Int64) { #expect(Instant.ms(text) == ms) }

    @Test(arguments: [
        "", "2026-11-21", "2026-11-21T10:00:00", "2026-11-21 10:00:00Z", "2026-11-21T10:00Z", "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-02-29T00:00:00Z", "2100-02-29T00:00:00Z", "2026-04-31T00:00:00Z", "2026-01-00T00:00:00Z", "2026-01-01T24:00:00Z",
        "2026-01-01T00:60:00Z", "2026-01-01T00:00:60Z", "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00+8:00", "2026-01-01T00:00:00+08",
        "2026-01-01T00:00:00+24:00", "1969-12-31T23:59:59Z", "1970-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01",
        "12026-01-01T00:00:00Z",
        "2026-1-01T00:00:00Z ", "-026-01-01T00:00:00Z", "２026-01-01T00:00:00Z", "2026-01-01T00:00:00.0000000000000000000000Z",
    ])
    func otherTextIsRefused(_ text: String) { #expect(Instant.ms(text) == nil) }

    @Test func everyDayIsWrittenAndReadBack() {
        for day in stride(from: Int64(0), through: Instant.latest / 86_400_000, by: 13) {
            let ms = day * 86_400_000 + day % 86_400_000
            #expect(Instant.ms(Instant.text(ms)) == ms)
        }
        #expect(Instant.text(.max) == Instant.text(Instant.latest))
        #expect(Instant.text(.min) == "0000-01-01T00:00:00.000Z")
    }

    @Test func datesAreFoundationsOnes() {
        let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
        let day: Int64 = 86_400_000
        var instants: [Int64] = [0, 1_000, 59_000, 60_000, 3_599_000, 3_600_000, day - 500, day, -500, -day, -day - 500, -day + 500]
        // The first and last days of months in leap years and others, and the turns of centuries. From 1583 on both use the same calendar.
        for year in [1583, 1600, 1699, 1700, 1899, 1900, 1969, 1970, 1999, 2000, 2023, 2024, 2026, 2099, 2100, 2399, 2400, 9999] as [Int64]
        {
            let january = (year - 1970) * 365 + (year - 1969) / 4 - (year - 1901) / 100 + (year - 1601) / 400
            for offset in -2...400 { instants.append((january + Int64(offset)) * day + 45_296_500) }
        }
        for instant in instants where instant < 253_402_300_800_000 && instant > -12_212_553_600_000 {
            #expect(Instant.text(instant) == Date(timeIntervalSince1970: Double(instant) / 1_000).formatted(style), "\(instant)")
        }
        #expect(Instant.text(-1) == "1969-12-31T23:59:59.999Z" && Instant.text(1) == "1970-01-01T00:00:00.001Z")
        #expect(Instant.text(-86_400_001) == "1969-12-30T23:59:59.999Z" && Instant.text(45_296_078) == "1970-01-01T12:34:56.078Z")
        #expect(Instant.text(.min) == "0000-01-01T00:00:00.000Z" && Instant.text(-62_167_219_200_001) == Instant.text(.min))
        #expect(Instant.text(-62_167_219_199_999) == "0000-01-01T00:00:00.001Z")
        #expect(Instant.text(.max) == "9999-12-31T23:59:59.999Z" && Instant.text(253_402_300_799_998) == "9999-12-31T23:59:59.998Z")
    }

    @Test(arguments: [
        (0, "1970-01-01T00:00:00.000Z"), (1_795_255_200_000, "2026-11-21T10:00:00.000Z"), (951_782_400_001, "2000-02-29T00:00:00.001Z"),
        (-1, "1969-12-31T23:59:59.999Z"), (4_107_542_399_999, "2100-02-28T23:59:59.999Z"), (Int64.max, "9999-12-31T23:59:59.999Z"),
        (Int64.min, "0000-01-01T00:00:00.000Z"),
    ]) func instantsAreWritten(_ ms: Int64, _ text: String) {
        #expect(Instant.text(ms) == text)
    }

    /// Midnights, leap days, and the first and last moments that have four digits for the year.
    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00Z"), (999, "1970-01-01T00:00:00Z"), (-1, "1969-12-31T23:59:59Z"), (-1_000, "1969-12-31T23:59:59Z"),
            (-1_001, "1969-12-31T23:59:58Z"), (1_795_305_599_999, "2026-11-21T23:59:59Z"), (1_795_305_600_000, "2026-11-22T00:00:00Z"),
            (951_868_799_999, "2000-02-29T23:59:59Z"), (951_868_800_000, "2000-03-01T00:00:00Z"),
            (1_709_164_799_999, "2024-02-28T23:59:59Z"),
            (1_709_164_800_000, "2024-02-29T00:00:00Z"), (4_107_542_399_999, "2100-02-28T23:59:59Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z"),
            (-62_162_121_600_000, "0000-02-29T00:00:00Z"), (-62_162_121_600_001, "0000-02-28T23:59:59Z"),
            (-62_162_035_200_000, "0000-03-01T00:00:00Z"),
            (-62_135_596_800_000, "0001-01-01T00:00:00Z"), (-62_135_596_800_001, "0000-12-31T23:59:59Z"), (.min, "0000-01-01T00:00:00Z"),
            (Instant.latest, "9999-12-31T23:59:59Z"), (.max, "9999-12-31T23:59:59Z"),
        ] as [(Int64, String)])
    func isWrittenWithoutMilliseconds(_ ms: Int64, _ text: String) {
        #expect(Instant.secondsText(ms) == text)
        #expect(Instant.text(ms).hasPrefix(text.dropLast()))
    }
}
