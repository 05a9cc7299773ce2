E={}
E['Rooms/MemberRoutes.swift']=[
('''            in: [RoomInputs.room.erased], query: [RoomInputs.afterUser.erased, RoomInputs.limit.erased], answers: MemberListAnswer.outputType
''','''            in: [RoomInputs.room.erased], query: [RoomInputs.afterUser.erased, RoomInputs.limit.erased],
            answers: MemberListAnswer.outputType
'''),
]
E['Rooms/RoomInputs.swift']=[('"known are ','"expected one of ')]
E['Forms/Input.swift']=[('"known are ','"expected one of ')]
E['Callbacks/CallbackRoutes.swift']=[('"known are ','"expected one of ')]
E['Recordings/RecordingAnswers.swift']=[
('"Shared by all files from this start to its end."','"The task\'s id, shared by all files from this start to its end."'),
('"Shared by all files from one start to its end."','"The task\'s id, shared by all files from one start to its end."'),
]
E['Recordings/RecordingRoutes.swift']=[('"What to do."','"Whether to start or stop recording."')]
E['URLs/URLRoutes.swift']=[
('''"paintPushUrl", .urls, .app, "The same as a PNG picture.",
''','''"paintPushUrl", .urls, .app,
            "Make a signed push URL and draw it as a QR code, as a PNG picture.",
'''),
('draw it as a QR code, for a device\'s camera."','draw it as a QR code in SVG, for a device\'s camera."'),
]
