// Rooms drawn at random, one a frame: size, colours, light, furniture and camera. Pictures, and the distance of what each
// pixel shows as a share of 12 m:
//     povray +Irooms.pov +Opicture.png +W64 +H48 +KFF120 +A0.1 -D
//     povray +Irooms.pov +Odistance.png +W32 +H24 +KFF120 -A -D Declare=Distance=1 +FN16 File_Gamma=1 Grayscale_Output=true
#version 3.7;
#ifndef (Distance) #declare Distance = 0; #end
global_settings { assumed_gamma 1.0 }
#declare R = seed(2000 + frame_number);
#macro Between(A, B) (A + (B - A) * rand(R)) #end
#macro Paint() rgb <Between(0.2, 0.9), Between(0.2, 0.9), Between(0.2, 0.9)> #end

#declare Half = Between(1.8, 3.5);
#declare Long = Between(4, 9);
#declare High = Between(2.4, 3.2);
#declare Eye = <Between(-0.5, 0.5) * Half, Between(1.2, 1.8), 0.3>;
camera {
  perspective location Eye right 4/3 * x up y angle 75
  look_at Eye + <Between(-0.5, 0.5), Between(-0.35, -0.05), 1>
}
// Daylight falls off with the distance of the lamp, so that shading tells something about place.
light_source { <Between(-0.5, 0.5) * Half, High - 0.3, Between(0.2, 0.7) * Long> color rgb 1.1 fade_distance 3 fade_power 1 }
#declare A = Eye.x;
#declare B = Eye.y;
#declare C = Eye.z;
#declare Far = function { min(sqrt(pow(x - A, 2) + pow(y - B, 2) + pow(z - C, 2)) / 12, 1) }
#declare Measured = texture {
  pigment { function { Far(x, y, z) } color_map { [0 color rgb 0] [1 color rgb 1] } }
  finish { ambient 0 diffuse 0 emission 1 }
}
#macro Dressed(Pigment)
  #if (Distance) texture { Measured } #else texture { pigment { Pigment } finish { ambient 0 emission 0.15 diffuse 0.8 } } #end
#end
#declare Floor = pigment { checker color Paint() color Paint() scale Between(0.3, 0.8) }
#declare Side = pigment { color Paint() }
#declare End = pigment { color Paint() }
#declare Top = pigment { color rgb 0.9 }
plane { y, 0 Dressed(Floor) }
plane { -y, -High Dressed(Top) }
plane { x, -Half Dressed(Side) }
plane { -x, -Half Dressed(Side) }
plane { z, -0.1 Dressed(End) }
plane { -z, -Long Dressed(End) }
#declare Pieces = floor(Between(2, 6));
#for (I, 1, Pieces)
  #declare Wide = Between(0.3, 0.9);
  #declare Deep = Between(0.3, 0.6);
  #declare Tall = Between(0.4, 2);
  #declare Turned = Between(-45, 45);
  #declare Place = <Between(-0.8, 0.8) * Half, 0, Between(0.35, 0.9) * Long>;
  #declare Wood = pigment { color Paint() }
  #if (rand(R) < 0.25)
    sphere { Place + <0, Wide / 2, 0>, Wide / 2 Dressed(Wood) }
  #else
    // Textures after the move: distances are those of where the box stands.
    box { <-Wide, 0, -Deep>, <Wide, Tall, Deep> rotate Turned * y translate Place Dressed(Wood) }
  #end
#end
